"""From what the child recorded to a trace: operators with samples per run, shares, a timeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.measure.traces._monitor import Recorded
from modelwright.measure.traces._names import ModelNodes, Named, type_in_name
from modelwright.measure.traces._profile import Kernel, KernelShapes
from modelwright.measure.traces._spans import CallSpan, Layout, OpRow, is_partition, lay_out
from modelwright.measure.traces._spread import shares_of_runs, spreads
from modelwright.measure.traces._types import (
    Operator,
    OperatorBytes,
    OperatorKind,
    OpTrace,
    Spread,
    TimelineSpan,
    TracePartition,
    TraceReason,
    TraceShare,
    TraceSource,
    TraceStatus,
    TraceTotals,
    TraceWindow,
    Vocabulary,
)
from modelwright.targets import DeviceOp, TraceProblem

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")

Regions = Mapping[tuple[str, str], Named]
PARTITION_TYPE, OVERHEAD_TYPE, UNKNOWN_TYPE = "(partition)", "(partition overhead)", "(unknown)"
_LONGEST_TIMELINE = 4000


@dataclass(slots=True)
class _Tally:
    """One operator while the runs are added up; lists have one entry per measured run."""

    runs: int
    us: list[float | None] = field(init=False)
    calls: int = 0
    cycles: int | None = None
    inner: DeviceOp | None = None

    def __post_init__(self) -> None:
        self.us = [None] * self.runs

    @property
    def typical_us(self) -> float:
        """The median over all runs; a run that did not call it took none."""
        return _median([value or 0.0 for value in self.us])


def build(empty: OpTrace, recorded: Recorded, nodes: ModelNodes, regions: Regions) -> OpTrace:
    """The filled trace; what went wrong on the way is its status and reason."""
    base = replace(
        empty,
        bound=recorded.facts,
        source=replace(empty.source, timing_valid=recorded.facts.timing_valid),
    )
    if recorded.profile is None:
        problem = recorded.problem
        assert problem is not None, "no profile, so there is a problem"
        missing = problem.reason is TraceReason.PROFILE_MISSING
        return _without_data(base, problem, TraceStatus.NO_DATA if missing else TraceStatus.PARSE_FAILED)
    expected = recorded.warmup + recorded.measured
    if len(recorded.profile.runs) != expected:
        words = f"{expected} runs were made, the profile holds {len(recorded.profile.runs)}"
        return _without_data(base, TraceProblem(TraceReason.RUN_COUNT, words), TraceStatus.PARSE_FAILED)
    layout, problem = trusted_layout(recorded)
    filled = _filled(base, recorded, layout, nodes, regions)
    if not filled.operators:
        problem = TraceProblem(TraceReason.NO_NODE_EVENTS, "the profile holds runs but no operators")
        return _without_data(base, problem, TraceStatus.NO_DATA)
    if problem is not None:
        return replace(filled, status=TraceStatus.PARTIAL, reason_code=problem.reason, error=problem.words)
    return replace(filled, status=TraceStatus.OK)


def trusted_layout(recorded: Recorded) -> tuple[Layout, TraceProblem | None]:
    """With the EP's own operators where they can be trusted, else with whole partitions and the reason."""
    assert recorded.profile is not None
    try:
        return lay_out(recorded.profile, recorded.inside), recorded.inside_problem
    except TraceProblem as problem:
        return Layout(recorded.profile), problem


def _without_data(base: OpTrace, problem: TraceProblem, status: TraceStatus) -> OpTrace:
    return replace(base, status=status, reason_code=problem.reason, error=problem.words)


def _filled(base: OpTrace, recorded: Recorded, layout: Layout, nodes: ModelNodes, regions: Regions) -> OpTrace:
    profile = layout.profile
    tallies = _tally(layout, recorded.warmup)
    ids = operator_ids(layout, tallies)
    whole = sum(tally.typical_us for tally in tallies.values())
    namer = Namer(recorded, nodes, regions, opened=bool(layout.blocks))
    shapes = profile.shapes if base.requested.level == "detail" else None
    shares = shares_of_runs([tally.us for tally in tallies.values()]) if tallies else None
    apart = [] if shares is None else spreads(shares)
    operators = tuple(
        replace(_operator(row, tally, ids, namer, shapes, whole), spread=spread)
        for (row, tally), spread in zip(tallies.items(), apart, strict=True)
    )
    run_us = [float(run.duration) for run in profile.runs[recorded.warmup :]]
    outside = [
        max(0.0, us - sum(tally.us[number] or 0.0 for tally in tallies.values())) for number, us in enumerate(run_us)
    ]
    return replace(
        base,
        source=_source(base, recorded, layout, operators),
        window=TraceWindow(base.window.runs, recorded.warmup, len(run_us)),
        totals=TraceTotals(_median(run_us), whole, _median(outside), tuple(run_us)),
        operators=tuple(sorted(operators, key=lambda item: (-(item.percent or 0), item.id))),
        by_op_type=_shares(operators, whole, lambda item: item.op_type),
        by_provider=_shares(operators, whole, lambda item: item.provider),
        partitions=_partitions(layout, recorded.warmup, ids),
        timeline=_timeline(layout, recorded.warmup, ids, whole + _median(outside)),
    )


def _tally(layout: Layout, warmup: int) -> dict[OpRow, _Tally]:
    count = len(layout.profile.runs) - warmup
    found: dict[OpRow, _Tally] = {}
    for number in range(count):
        for span in layout.spans(warmup + number):
            tally = found.setdefault(span.row, _Tally(count))
            tally.us[number] = (tally.us[number] or 0.0) + span.own
            tally.calls += 1
            tally.inner = span.inner
            if span.cycles is not None:
                tally.cycles = (tally.cycles or 0) + span.cycles
    return found


def operator_ids(layout: Layout, rows: Iterable[OpRow]) -> dict[OpRow, str]:
    """`name#index`, `qnn_0` for a partition, `qnn_0:OpId_22` inside it; what runs in a body has its parent first."""
    kernels = layout.profile.kernels
    found: dict[OpRow, str] = {}
    seen: dict[int, int] = {}
    for row in rows:
        kernel = kernels[row.kernel]
        if row.op is not None:
            assert row.parent is not None
            found[row] = f"{found[row.parent]}:{row.op[1]}"
        elif is_partition(kernel):
            number = seen.setdefault(row.kernel, len(seen))
            found[row] = _under(found, row, f"{_short(kernel.provider)}_{number}")
        else:
            found[row] = _under(found, row, f"{kernel.name}#{kernel.index}")
    return _unique(found)


def _unique(ids: dict[OpRow, str]) -> dict[OpRow, str]:
    """Nameless nodes of two branches can share everything but what they are."""
    seen: Counter[str] = Counter()
    for row, name in ids.items():
        seen[name] += 1
        if seen[name] > 1:
            ids[row] = f"{name}~{seen[name]}"
    return ids


def _under(found: Mapping[OpRow, str], row: OpRow, name: str) -> str:
    return name if row.parent is None else f"{found[row.parent]}/{name}"


def _short(provider: str) -> str:
    return provider.removesuffix("ExecutionProvider").lower()


class Namer:
    """The model's words for a kernel, or for an operator the EP made."""

    def __init__(self, recorded: Recorded, nodes: ModelNodes, regions: Regions, *, opened: bool) -> None:
        assert recorded.profile is not None
        self._partition_type = OVERHEAD_TYPE if opened else PARTITION_TYPE
        self._kernels = recorded.profile.kernels
        self._types = recorded.inside.op_types if recorded.inside else {}
        self._ep = _short(recorded.inside.ep) if recorded.inside else ""
        self._nodes, self._regions = nodes, regions

    def kernel(self, row: OpRow) -> Kernel:
        return self._kernels[row.kernel]

    def words(self, row: OpRow, inner: DeviceOp | None) -> tuple[Named, str, Vocabulary, OperatorKind]:
        """Who it is, its type, in whose vocabulary, and what kind of row."""
        kernel = self.kernel(row)
        if inner is not None:
            return self._inside(kernel, inner)
        if is_partition(kernel):
            return Named((), "inserted"), self._partition_type, "onnxruntime", "partition"
        own = self._nodes.exact(kernel.name, kernel.op_type, kernel.index)
        if own is not None:
            return Named((own.label,), "model"), own.op_type, "onnx", "kernel"
        region = self._regions.get((kernel.name, kernel.op_type)) if row.parent is None else None
        named = region or self._nodes.named(kernel.name, kernel.op_type, kernel.index)
        return named, kernel.op_type, "onnx" if named.origin == "model" else "onnxruntime", "kernel"

    def _inside(self, kernel: Kernel, op: DeviceOp) -> tuple[Named, str, Vocabulary, OperatorKind]:
        if op.is_io:
            return Named((), "inserted"), op.name, self._ep, "io"
        named = self._nodes.sources(op.sources or (op.name,))
        if named.op_type is not None:
            return named, named.op_type, "onnx", "kernel"
        known = self._types.get((kernel.name, op.name)) or type_in_name(op.name) or UNKNOWN_TYPE
        return named, known, self._ep, "kernel"


def _operator(
    row: OpRow,
    tally: _Tally,
    ids: Mapping[OpRow, str],
    namer: Namer,
    shapes: tuple[KernelShapes, ...] | None,
    whole: float,
) -> Operator:
    kernel = namer.kernel(row)
    named, op_type, vocabulary, kind = namer.words(row, tally.inner)
    seen = None if tally.inner or shapes is None else shapes[row.kernel]
    inside = row.parent is not None and row.op is not None
    return Operator(
        id=ids[row],
        node=tally.inner.name if tally.inner else kernel.name,
        onnx_nodes=named.onnx_nodes,
        origin=named.origin,
        op_type=op_type,
        vocabulary=vocabulary,
        kind=kind,
        provider=kernel.provider,
        partition=ids[row.parent] if inside and row.parent else ids[row] if kind == "partition" else None,
        parent=ids[row.parent] if row.parent else None,
        calls_per_run=tally.calls / tally.runs,
        self_us=_spread([value for value in tally.us if value is not None]),
        percent=100 * tally.typical_us / whole if whole else None,
        spread=None,
        cycles=None if tally.cycles is None else tally.cycles / tally.runs,
        inputs=seen.inputs if seen else None,
        outputs=seen.outputs if seen else None,
        bytes=OperatorBytes(seen.activation_bytes, seen.parameter_bytes, seen.output_bytes) if seen else None,
        samples_us=tuple(tally.us),
    )


def _spread(values: list[float]) -> Spread:
    p50, p90 = (float(value) for value in np.percentile(values, (50, 90)))
    return Spread(sum(values) / len(values), p50, p90, min(values), max(values))


def _median(values: list[float]) -> float:
    return float(np.median(values))


def _shares(operators: Sequence[Operator], whole: float, name: Callable[[Operator], str]) -> tuple[TraceShare, ...]:
    groups: dict[str, list[Operator]] = {}
    for item in operators:
        groups.setdefault(name(item), []).append(item)
    if not groups:
        return ()
    apart = spreads(shares_of_runs([_together(group) for group in groups.values()]))
    found = []
    for (key, group), spread in zip(groups.items(), apart, strict=True):
        us = sum((item.percent or 0.0) * whole / 100 for item in group)
        found.append(TraceShare(key, len(group), us, 100 * us / whole if whole else None, spread))
    return tuple(sorted(found, key=lambda share: (-share.self_us, share.name)))


def _together(group: Sequence[Operator]) -> list[float]:
    """What they took in each run."""
    return [sum(us or 0.0 for us in run) for run in zip(*(item.samples_us for item in group), strict=True)]


def _partitions(layout: Layout, warmup: int, ids: Mapping[OpRow, str]) -> tuple[TracePartition, ...]:
    kernels = layout.profile.kernels
    rows = [row for row in ids if row.op is None and is_partition(kernels[row.kernel])]
    runs = [layout.spans(number) for number in range(warmup, len(layout.profile.runs))]
    return tuple(
        TracePartition(
            id=ids[row],
            provider=kernels[row.kernel].provider,
            operators=sum(other.parent == row and other.op is not None for other in ids),
            wall_us=_median([sum(span.duration for span in spans if span.row == row) for spans in runs]),
            accelerator_us=_inside_us(runs, row) if layout.blocks else None,
        )
        for row in rows
    )


def _inside_us(runs: list[list[CallSpan]], row: OpRow) -> float:
    return _median([sum(span.duration for span in spans if span.inner and span.row.parent == row) for spans in runs])


def _timeline(layout: Layout, warmup: int, ids: Mapping[OpRow, str], usual_us: float) -> tuple[TimelineSpan, ...]:
    """Of the run nearest the usual time: the median one may have been interrupted."""
    runs = layout.profile.runs
    number = min(range(warmup, len(runs)), key=lambda number: abs(runs[number].duration - usual_us))
    longest = sorted(layout.spans(number), key=lambda span: -span.duration)[:_LONGEST_TIMELINE]
    return tuple(
        TimelineSpan(ids[span.row], span.start, span.duration, span.depth)
        for span in sorted(longest, key=lambda span: (span.start, span.depth))
    )


def _source(base: OpTrace, recorded: Recorded, layout: Layout, operators: tuple[Operator, ...]) -> TraceSource:
    closed = {item.id for item in operators if item.kind == "partition"} - {
        item.parent for item in operators if item.parent
    }
    backends = ("onnxruntime profile", *((recorded.inside.source,) if recorded.inside and layout.blocks else ()))
    return TraceSource(backends, "partition" if closed else "kernel", base.source.timing_valid)
