"""The smallest set of nodes to give more bits: by the noise they add, then verified one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.diagnosis import view
from modelwright.errors import UsageError
from modelwright.judge import VerdictKind
from modelwright.models import onnx_of
from modelwright.pipeline import Recipe
from modelwright.repairs._actions import combined, orders
from modelwright.repairs._candidates import CHECK, CHOOSE, Candidate, Candidates
from modelwright.repairs._types import FixInterrupted, FixOptions, FixResult, FixRow, FixScore, Level, Promotion
from modelwright.stages.quantize import REDUCED_BITS, QuantizeParams, steps_of, weight_range_bits
from modelwright.store import Store
from modelwright.vocabulary import OnProgress, silent

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
    float_model: str | Path,
    recipe: Recipe,
    options: FixOptions,
    *,
    store: Store,
    on_progress: OnProgress | None = None,
) -> FixResult:
    """Quantize again with as few exceptions as the target allows, and check the result on samples not chosen from.

    `recipe` is how the quantized model was made; what a candidate changes is only in its `quantize`. Every build,
    score and placement is kept in the store: a search that was ended goes on where it stood. Raises FixInterrupted,
    with what was tried, when somebody ends it early.
    """
    _check(options)
    assert recipe.quantize is not None, "what is repaired was quantized"
    with Candidates(onnx_of(float_model), recipe, options, store, on_progress or silent) as tried:
        try:
            return _fix(tried, recipe.quantize, options)
        except KeyboardInterrupt:
            if not tried.made:
                raise
            stop = FixInterrupted()
            stop.partial = _so_far(tried)
            raise stop from None


def _fix(tried: Candidates, params: QuantizeParams, options: FixOptions) -> FixResult:
    start = tried.make(params)
    if tried.met_on(start, CHOOSE, margin=True) and tried.met_on(start, CHECK, margin=False):
        return _result(tried, VerdictKind.ALREADY_MET, None, _Found("float", (), start, True))
    found = _search(tried, params, options, start)
    status, reason = _verdict(tried, found)
    return replace(_result(tried, status, reason, found, start), strategies=tuple(_levels(params, options)))


def keeps_to_7_bits(model: str | Path) -> bool:
    """Do the 8-bit weights of this model leave the last bit unused? So a repair starts from what it is."""
    found = view(str(model))
    signed = (name for name, tensor in found.stored.items() if tensor.data_type == onnx.TensorProto.INT8)
    return weight_range_bits(found.values(name) for name in signed) == REDUCED_BITS


def _search(tried: Candidates, params: QuantizeParams, options: FixOptions, start: Candidate) -> _Found:
    """Every level that suits the target is tried; the one that holds together best on it wins."""
    report, base = tried.diagnosed(start), tried.view()
    saturated = report.saturated and not tried.exact
    found = []

    def trial(chosen: Sequence[Promotion]) -> Candidate:
        return tried.make(combined(chosen, params, base))

    for level in _levels(params, options):
        for offered in orders(report, base, params, level, saturated=saturated):
            chosen, met = _smallest(offered, lambda picked: tried.met_on(trial(picked), CHOOSE, margin=True), tried)
            found.append(_Found(level, tuple(chosen), trial(chosen), met, _covered(offered, chosen)))
            if met:
                break
    # Without a set that is good enough nothing is raised: half a repair is not offered as one.
    return min(found, key=lambda item: _cost(item, tried))


def _covered(offered: Sequence[Promotion], chosen: Sequence[Promotion]) -> float:
    """The part of the noise whose makers are raised now, also those that another raise took along."""
    excluded = {name for item in chosen for name in item.excludes}
    widened = {one for item in chosen for one in item.overrides}
    return sum(item.origin_share for item in offered if {*item.excludes} <= excluded and {*item.overrides} <= widened)


def _smallest(
    offered: list[Promotion], good: Callable[[Sequence[Promotion]], bool], tried: Candidates
) -> tuple[list[Promotion], bool]:
    """The shortest prefix that is good enough, found by doubling and halving; then what it can do without."""
    size = 1
    while not offered or not good(offered[:size]):
        if size >= len(offered) or tried.spent:
            return [], False
        size = min(2 * size, len(offered))
    low, high = size // 2, size
    while high - low > 1 and not tried.spent:
        middle = (low + high) // 2
        low, high = (low, middle) if good(offered[:middle]) else (middle, high)
    kept = offered[:high]
    for item in reversed(offered[: high - 1]):
        rest = [one for one in kept if one is not item]
        if rest and not tried.spent and good(rest):
            kept = rest
    return kept, True


def _levels(params: QuantizeParams, options: FixOptions) -> list[Level]:
    """A CPU runs float faster than 16-bit pairs; an NPU keeps 16-bit tensors in one piece, and float may cut it."""
    static = steps_of(params.precision)[0].kind == "static"
    if not static or options.raise_to == "float":
        return ["float"]
    if options.raise_to == "16bit":
        return ["16bit"]
    return ["float"] if options.target is None or options.target.device == "cpu" else ["16bit", "float"]


def _cost(found: _Found, tried: Candidates) -> tuple[bool, int, int, int, int]:
    """Placement first: a graph in many pieces is no repair."""
    placed = tried.placed(found.candidate)
    pieces, left = (placed.partitions, placed.left_nodes) if placed else (0, 0)
    return not found.met, left, pieces, len(found.chosen), found.candidate.file_bytes


def _verdict(tried: Candidates, found: _Found) -> tuple[VerdictKind, str | None]:
    if not found.met:
        return VerdictKind.NOT_MET, f"the target is not met, {_why_not(tried)}"
    if not tried.met_on(found.candidate, CHECK, margin=False):
        return (
            VerdictKind.NOT_MET,
            "the target is met on the samples that chose, but not on the ones kept for the check",
        )
    return VerdictKind.MET, None


def _why_not(tried: Candidates) -> str:
    if tried.spent:
        return "the limit on builds was reached"
    if tried.refused is not None:
        return f"and with every noisy node raised there is no such model: {tried.refused}"
    return "even with every noisy node raised"


def _result(
    tried: Candidates, status: VerdictKind, reason: str | None, found: _Found, start: Candidate | None = None
) -> FixResult:
    candidates = [("quantized", 0, start or found.candidate)]
    if found.chosen:
        candidates.append(("repaired", len(found.chosen), found.candidate))
    times = tried.times([item for _, _, item in candidates])
    scored = [_row(tried, *item, p50) for item, p50 in zip(candidates, times[1:], strict=True)]
    rows = [_float_row(tried, times[0]), *scored]
    return replace(
        _answer(tried, status, reason, rows),
        note=_note(rows[0], rows[-1]) if found.chosen else None,
        raised=found.chosen,
        covered_share=found.covered,
        quantize=found.candidate.params,
    )


def _so_far(tried: Candidates) -> FixResult:
    """What was tried, without asking anybody anything more."""
    start = tried.made[0].params
    rows = [
        FixRow(
            name=f"candidate {item.number}" if item.number > 1 else "quantized",
            raised=_raised(item.params, start),
            file_bytes=item.file_bytes,
            choose=tried.scored(item, CHOOSE),
            check=tried.scored(item, CHECK),
        )
        for item in tried.made
    ]
    reason = f"ended after {tried.builds} candidates; the same command goes on from here"
    return _answer(tried, VerdictKind.UNFINISHED, reason, rows)


def _answer(tried: Candidates, status: VerdictKind, reason: str | None, rows: Sequence[FixRow]) -> FixResult:
    """With nothing raised yet."""
    return FixResult(
        status=status,
        reason=reason,
        note=None,
        wanted=tried.wanted,
        metric=tried.metric,
        target=str(tried.options.target or "cpu"),
        raised=(),
        covered_share=0.0,
        quantize=tried.made[0].params,
        rows=tuple(rows),
        builds=tried.builds,
        choose_samples=_samples(row.choose for row in rows),
        check_samples=_samples(row.check for row in rows),
        random_data=tried.options.data.random,
        strategies=(),
        from_store=tried.from_store,
    )


def _samples(scores: Iterable[FixScore | None]) -> int:
    return max((score.samples for score in scores if score is not None), default=0)


def _raised(params: QuantizeParams, start: QuantizeParams) -> int:
    """How many nodes and tensors these parameters treat otherwise than the start did."""
    nodes = set(params.nodes_to_exclude) - set(start.nodes_to_exclude)
    return len(nodes) + len(set(params.overrides) - set(start.overrides))


def _note(whole: FixRow, repaired: FixRow) -> str | None:
    share = repaired.file_bytes / whole.file_bytes
    if share < _HARDLY_SMALLER:
        return None
    return f"{share:.0%} of the float model's size is left: another precision (w8a16, dynamic, fp16) may serve better"


def _row(tried: Candidates, name: str, raised: int, item: Candidate, p50: float | None) -> FixRow:
    choose, check = (tried.score(item, half).candidate for half in (CHOOSE, CHECK))
    row = FixRow(name, raised, item.file_bytes, choose, check, p50)
    placed = tried.placed(item)
    return replace(row, partitions=placed.partitions, left_nodes=placed.left_nodes) if placed else row


def _float_row(tried: Candidates, p50: float | None) -> FixRow:
    choose, check = (tried.reference_score(half) for half in (CHOOSE, CHECK))
    return FixRow("float", 0, tried.base_bytes, choose, check, p50)


def _check(options: FixOptions) -> None:
    if (options.target_sqnr is None) == (options.target_drop is None):
        raise UsageError(
            "say what must hold after the repair",
            cause="exactly one of `target_sqnr` and `target_drop` is needed",
            fix="give `target_sqnr` 35, or `target_drop` 1% with labelled data",
        )
    if options.metric is not None and options.target_drop is None:
        raise UsageError(
            "`metric` needs `target_drop`", cause="an SQNR needs no metric", fix="give `target_drop` 1% too"
        )
    if options.samples < _MIN_SAMPLES:
        raise UsageError(
            f"{options.samples} samples cannot be split",
            cause="one half chooses and the other half checks",
            fix="use 64 `samples`",
        )
