"""Who ran inside whom: the calls of one run with their own time, and the operators inside compiled partitions."""

from __future__ import annotations

from collections.abc import Iterator

from modelwright._dataclass import dataclass
from modelwright.measure.traces._profile import PARENTS, Kernel, KernelCall, Profile, Run
from modelwright.measure.traces._types import TraceReason
from modelwright.targets import DeviceBlock, DeviceOp, DeviceTrace, TraceProblem


@dataclass(frozen=True)
class OpRow:
    """What makes an operator: its kernel, the operator inside the partition if it is one, and what it ran inside."""

    kernel: int
    op: tuple[str, str] | None = None
    parent: OpRow | None = None


@dataclass(frozen=True)
class CallSpan:
    """One call. `own` is its time without what ran inside it; `inner` is set for an operator of a partition."""

    row: OpRow
    start: float
    duration: float
    own: float
    depth: int
    cycles: int | None = None
    inner: DeviceOp | None = None


@dataclass(frozen=True, eq=False)
class Layout:
    """The runs of a profile with the blocks that the EP `ep` recorded, dealt out in the order they ran."""

    profile: Profile
    blocks: tuple[tuple[DeviceBlock, ...], ...] = ()
    ep: str | None = None

    def spans(self, number: int) -> list[CallSpan]:
        """The calls of run `number`, by start, parents before what ran inside them."""
        run = self.profile.runs[number]
        blocks = iter(self.blocks[number]) if self.blocks else None
        return list(_spans(self.profile, run, blocks, self.ep))


def lay_out(profile: Profile, inside: DeviceTrace | None) -> Layout:
    """Raise `TraceProblem` when the EP's partitions ran more or less often than it recorded."""
    if inside is None:
        return Layout(profile)
    ep = inside.ep
    counts = [sum(profile.kernels[call.kernel].provider == ep for call in run.calls) for run in profile.runs]
    if sum(counts) != len(inside.blocks):
        words = f"onnxruntime ran {ep} {sum(counts)} times, it recorded {len(inside.blocks)}"
        raise TraceProblem(TraceReason.BLOCK_COUNT, words)
    blocks = iter(inside.blocks)
    return Layout(profile, tuple(tuple(next(blocks) for _ in range(count)) for count in counts), ep)


def is_partition(kernel: Kernel) -> bool:
    """A piece an EP compiled: onnxruntime calls it after the EP, not after an operator."""
    return kernel.op_type.startswith((kernel.provider, "TRTKernel_")) or kernel.op_type == "EPContext"


@dataclass(slots=True)
class _Open:
    """A call that may still get children."""

    call: KernelCall
    row: OpRow
    depth: int


def _spans(profile: Profile, run: Run, blocks: Iterator[DeviceBlock] | None, ep: str | None) -> Iterator[CallSpan]:
    inside = _children_us(profile, run)
    for position, (call, parent) in enumerate(_nested(profile, run)):
        row = OpRow(call.kernel, None, parent.row if parent else None)
        depth = parent.depth + 1 if parent else 0
        block = next(blocks) if blocks is not None and profile.kernels[call.kernel].provider == ep else None
        hidden = block.accelerator_us if block else inside.get(position, 0)
        start = call.start - run.start
        yield CallSpan(row, start, call.duration, max(0.0, call.duration - hidden), depth)
        if block is not None:
            yield from _inner(block, row, start, depth + 1)


def _inner(block: DeviceBlock, row: OpRow, start: float, depth: int) -> Iterator[CallSpan]:
    for op in block.ops:
        duration = block.op_us(op)
        inner = OpRow(row.kernel, (op.name, op.key), row)
        yield CallSpan(inner, start, duration, duration, depth, op.cycles, op)
        start += duration


def _nested(profile: Profile, run: Run) -> Iterator[tuple[KernelCall, _Open | None]]:
    stacks: dict[int, list[_Open]] = {}
    for call in run.calls:
        stack = stacks.setdefault(call.thread, [])
        while stack and call.start >= stack[-1].call.start + stack[-1].call.duration:
            stack.pop()
        parent = stack[-1] if stack else None
        yield call, parent
        if profile.kernels[call.kernel].op_type in PARENTS:
            row = OpRow(call.kernel, None, parent.row if parent else None)
            stack.append(_Open(call, row, parent.depth + 1 if parent else 0))


def _children_us(profile: Profile, run: Run) -> dict[int, int]:
    """By position of the parent: the time of its direct children."""
    places = {id(call): position for position, call in enumerate(run.calls)}
    found: dict[int, int] = {}
    for call, parent in _nested(profile, run):
        if parent is not None:
            place = places[id(parent.call)]
            found[place] = found.get(place, 0) + call.duration
    return found
