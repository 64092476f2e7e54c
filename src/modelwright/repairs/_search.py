"""The smallest set of nodes to give more bits: by the noise they add, then verified one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright._scratch import scratch
from modelwright.diagnosis import DebugOptions, debug, view
from modelwright.errors import UsageError
from modelwright.judge import VerdictKind
from modelwright.models import onnx_of
from modelwright.repairs._actions import combined, orders
from modelwright.repairs._bench import CHECK, CHOOSE, Bench, Candidate
from modelwright.repairs._types import FixOptions, FixPlan, FixResult, FixRow, FixScore, Level, Met, Promotion
from modelwright.stages.quantize import REDUCED_BITS, steps_of, weight_range_bits
from modelwright.vocabulary import OnProgress, Progress, silent
from modelwright.worker import Worker

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

_MIN_SAMPLES = 2
# Above this share of the float model, little was quantized in the end.
_HARDLY_SMALLER = 0.75


@dataclass(frozen=True)
class _Found:
    """What one way of raising came to."""

    level: Level
    chosen: tuple[Promotion, ...]
    candidate: Candidate
    met: bool
    covered: float = 0.0


def fix(
    float_model: str | Path, plan: FixPlan, options: FixOptions, *, on_progress: OnProgress | None = None
) -> FixResult:
    """Quantize again with as few exceptions as the target allows, and check the result on samples not chosen from."""
    _check(options)
    say = on_progress or silent
    with scratch("fix") as folder, Worker() as worker:
        bench = Bench(onnx_of(float_model), plan, options, Path(folder), worker, say)
        start = bench.build(plan.quantize)
        if bench.met_on(start, CHOOSE, margin=True) and bench.met_on(start, CHECK, margin=False):
            return _result(bench, VerdictKind.ALREADY_MET, None, _Found("float", (), start, True), ())
        found = _search(bench, plan, options, start)
        status, reason = _verdict(bench, found)
        return _result(bench, status, reason, found, tuple(_levels(plan, options)), start)


def keeps_to_7_bits(model: str | Path) -> bool:
    """Do the 8-bit weights of this model leave the last bit unused? So a repair starts from what it is."""
    found = view(str(model))
    signed = (name for name, tensor in found.stored.items() if tensor.data_type == onnx.TensorProto.INT8)
    return weight_range_bits(found.values(name) for name in signed) == REDUCED_BITS


def _search(bench: Bench, plan: FixPlan, options: FixOptions, start: Candidate) -> _Found:
    """Every level that suits the target is tried; the one that holds together best on it wins."""
    bench.say(Progress("looking for where the noise is made"))
    asked = DebugOptions(data=replace(options.data, samples=min(8, bench.half)), recorded=bench.recorded)
    report = debug(bench.base, start.path, asked)
    base = view(str(bench.base))
    saturated = report.saturated and not bench.exact
    found = []

    def trial(chosen: Sequence[Promotion]) -> Candidate:
        return bench.build(combined(chosen, plan.quantize, base))

    for level in _levels(plan, options):
        for offered in orders(report, base, plan.quantize, level, saturated=saturated):
            chosen, met = _smallest(offered, lambda picked: bench.met_on(trial(picked), CHOOSE, margin=True), bench)
            candidate = trial(chosen)
            found.append(_Found(level, tuple(chosen), candidate, met, _covered(offered, chosen)))
            if met:
                break
    # Without a set that is good enough nothing is raised: half a repair is not offered as one.
    return min(found, key=lambda item: _cost(item, bench))


def _covered(offered: Sequence[Promotion], chosen: Sequence[Promotion]) -> float:
    """The part of the noise whose makers are raised now, also those that another raise took along."""
    excluded = {name for item in chosen for name in item.excludes}
    widened = {one for item in chosen for one in item.overrides}
    return sum(item.origin_share for item in offered if {*item.excludes} <= excluded and {*item.overrides} <= widened)


def _smallest(
    offered: list[Promotion], good: Callable[[Sequence[Promotion]], bool], bench: Bench
) -> tuple[list[Promotion], bool]:
    """The shortest prefix that is good enough, found by doubling and halving; then what it can do without."""
    size = 1
    while not offered or not good(offered[:size]):
        if size >= len(offered) or bench.spent:
            return [], False
        size = min(2 * size, len(offered))
    low, high = size // 2, size
    while high - low > 1 and not bench.spent:
        middle = (low + high) // 2
        low, high = (low, middle) if good(offered[:middle]) else (middle, high)
    kept = offered[:high]
    for item in reversed(offered[: high - 1]):
        rest = [one for one in kept if one is not item]
        if rest and not bench.spent and good(rest):
            kept = rest
    return kept, True


def _levels(plan: FixPlan, options: FixOptions) -> list[Level]:
    """A CPU runs float faster than 16-bit pairs; an NPU keeps 16-bit tensors in one piece, and float may cut it."""
    static = steps_of(plan.quantize.precision)[0].kind == "static"
    if not static or options.raise_to == "float":
        return ["float"]
    if options.raise_to == "16bit":
        return ["16bit"]
    return ["float"] if options.target is None or options.target.device == "cpu" else ["16bit", "float"]


def _cost(found: _Found, bench: Bench) -> tuple[bool, int, int, int, int]:
    """Placement first: a graph in many pieces is no repair."""
    placed = bench.placed(found.candidate)
    pieces, left = (placed.partitions or 0, placed.left_nodes or 0) if placed else (0, 0)
    return not found.met, left, pieces, len(found.chosen), found.candidate.file_bytes


def _verdict(bench: Bench, found: _Found) -> tuple[Met, str | None]:
    if not found.met:
        return VerdictKind.NOT_MET, f"the target is not met, {_why_not(bench)}"
    if not bench.met_on(found.candidate, CHECK, margin=False):
        return (
            VerdictKind.NOT_MET,
            "the target is met on the samples that chose, but not on the ones kept for the check",
        )
    return VerdictKind.MET, None


def _why_not(bench: Bench) -> str:
    if bench.spent:
        return "the limit on builds was reached"
    if bench.refused is not None:
        return f"and with every noisy node raised there is no such model: {bench.refused}"
    return "even with every noisy node raised"


def _result(
    bench: Bench,
    status: Met,
    reason: str | None,
    found: _Found,
    levels: tuple[Level, ...],
    start: Candidate | None = None,
) -> FixResult:
    candidates = [("quantized", 0, start or found.candidate)]
    if found.chosen:
        candidates.append(("repaired", len(found.chosen), found.candidate))
    times = bench.times([bench.base, *(item.path for _, _, item in candidates)])
    scored = [_row(bench, *item, p50) for item, p50 in zip(candidates, times[1:], strict=True)]
    rows = [_float_row(bench, times[0]), *scored]
    return FixResult(
        status=status,
        reason=reason,
        note=_note(rows[0], rows[-1]) if found.chosen else None,
        wanted=bench.wanted,
        metric=bench.metric,
        target=str(bench.options.target or "cpu"),
        raised=found.chosen,
        covered_share=found.covered,
        quantize=found.candidate.params,
        rows=tuple(rows),
        builds=bench.builds,
        choose_samples=rows[1].choose.samples if rows[1].choose else 0,
        check_samples=rows[1].check.samples if rows[1].check else 0,
        random_data=bench.options.data.random,
        strategies=levels,
    )


def _note(whole: FixRow, repaired: FixRow) -> str | None:
    share = repaired.file_bytes / whole.file_bytes
    if share < _HARDLY_SMALLER:
        return None
    return f"{share:.0%} of the float model's size is left: another precision (w8a16, dynamic, fp16) may serve better"


def _row(bench: Bench, name: str, raised: int, item: Candidate, p50: float | None) -> FixRow:
    row = FixRow(name, raised, item.file_bytes, bench.score(item, CHOOSE), bench.score(item, CHECK), p50)
    placed = bench.placed(item)
    return replace(row, partitions=placed.partitions, left_nodes=placed.left_nodes) if placed else row


def _float_row(bench: Bench, p50: float | None) -> FixRow:
    choose, check = (FixScore(item.samples, None, item.metric) for item in bench.reference_scores)
    return FixRow("float", 0, bench.base_bytes, choose, check, p50)


def _check(options: FixOptions) -> None:
    if (options.target_sqnr is None) == (options.target_drop is None):
        raise UsageError(
            "say what must hold after the repair",
            cause="exactly one of --target-sqnr and --target-drop is needed",
            fix="--fix --target-sqnr 35, or --fix --target-drop 1% with labelled data",
        )
    if options.metric is not None and options.target_drop is None:
        raise UsageError(
            "--metric needs --target-drop", cause="an SQNR needs no metric", fix="--target-drop 1% --metric file.py:f"
        )
    if options.samples < _MIN_SAMPLES:
        raise UsageError(
            f"{options.samples} samples cannot be split",
            cause="one half chooses and the other half checks",
            fix="--samples 64",
        )
