"""The smallest set of nodes to give more bits: by the noise they add, then verified one by one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.diagnosis import DebugReport, view
from modelwright.errors import UsageError
from modelwright.judge import VerdictKind
from modelwright.models import onnx_of
from modelwright.pipeline import Recipe
from modelwright.repairs._actions import combined, exceptions, expected_gains, grown, more_effort, settings
from modelwright.repairs._candidates import CHECK, CHOOSE, Candidate, Candidates
from modelwright.repairs._subset import Chosen, Spent, SubsetSearch, Things, Trial
from modelwright.repairs._types import FixInterrupted, FixOptions, FixResult, FixRow, FixScore, Level, Promotion
from modelwright.stages.quantize import QuantizeParams, saturating, steps_of
from modelwright.store import Store
from modelwright.vocabulary import OnProgress, Progress, silent

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

_MIN_SAMPLES = 2
# Above this share of the float model, little was quantized in the end.
_HARDLY_SMALLER = 0.75
# Models of the front that are timed; each is a session.
_TIMED = 8


@dataclass(frozen=True)
class _Found:
    """The cheapest repair of a kind; nothing is chosen without one. `minimal`: each part was left out in vain.
    `whole`: everything that was offered was raised together once."""

    chosen: tuple[Promotion, ...]
    candidate: Candidate
    met: bool
    minimal: bool
    covered: float = 0.0
    surely: bool = True
    whole: bool = False


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
    params = start.params
    nothing = _Found((), start, met=False, minimal=False)
    # Where what is asked cannot be proven, what holds on these samples is better than nothing; it is said to be open.
    for surely in (True, False) if tried.provable else (False,):
        if tried.met_on(start, CHOOSE, surely=surely) and tried.met_on(start, CHECK, surely=False):
            return _result(tried, replace(nothing, met=True, minimal=True, surely=surely), start)
        if (forecast := tried.forecast) is not None:
            tried.say(Progress(forecast))
        found = _Search(tried, params, options, surely).run(start)
        if found.met or options.target_sqnr is not None:
            break
    return replace(_result(tried, found, start), strategies=tuple(_levels(params, options)))


def cannot_saturate(model: str | Path) -> bool:
    """Do the products of this model's 8-bit weights fit 16 bits? So a repair starts from what it is."""
    found = view(str(model))
    signed = any(tensor.data_type == onnx.TensorProto.INT8 for tensor in found.stored.values())
    return signed and not saturating(found.graph.model.graph, found.values)


class _Search:
    """What costs nothing first; then, at every level that suits the target, the cheapest set of exceptions."""

    def __init__(self, tried: Candidates, params: QuantizeParams, options: FixOptions, surely: bool) -> None:
        self._tried, self._params, self._options, self._surely = tried, params, options, surely
        self._view = tried.view

    def run(self, start: Candidate) -> _Found:
        report = self._tried.diagnosed(start)
        kept, best = self._settings(start, settings(self._params, saturated=report.saturated and not self._tried.exact))
        nothing = _Found((), start, met=False, minimal=False)
        found = [self._cheapest(kept, report)] if kept else []
        if not any(item.met for item in found):
            found += self._with_effort(kept, report)
        if any(item.met for item in found):
            return found[-1]
        report = self._tried.diagnosed(best) if kept else report
        for level in _levels(self._params, self._options):
            for offered in exceptions(report, self._view, self._params, level):
                found.append(self._cheapest([*kept, *offered], report))
                if found[-1].met:
                    break
        # Without a set that is good enough nothing is raised: half a repair is not offered as one.
        nothing = replace(nothing, whole=any(item.whole for item in found))
        return min((item for item in found if item.met), key=self._cost, default=nothing)

    def _with_effort(self, kept: list[Promotion], report: DebugReport) -> list[_Found]:
        """Where more effort is enough by itself. It is no part of a repair that raises something: it moves noise from
        one tensor to another, and every candidate would take as long."""
        more = [] if self._options.data.random or self._tried.spent else more_effort(self._params)
        if not more or not self._good(self._made([*kept, *more])):
            return []
        return [self._cheapest([*kept, *more], report)]

    def _settings(self, start: Candidate, offered: Sequence[Promotion]) -> tuple[list[Promotion], Candidate]:
        """Each is kept if there is less noise with it than without."""
        kept: list[Promotion] = []
        best, least = start, self._tried.noise(start)
        for item in offered:
            if self._tried.spent or self._good(best):
                break
            candidate = self._made([*kept, item])
            noise = self._tried.noise(candidate)
            if noise is not None and (least is None or noise < least):
                kept = [one for one in kept if one.tensor != item.tensor] + [item]
                best, least = candidate, noise
        return kept, best

    def _cheapest(self, pool: Sequence[Promotion], report: DebugReport) -> _Found:
        search = SubsetSearch(self._things(pool, report), lambda chosen: self._trial([pool[one] for one in chosen]))
        search.run()
        chosen = tuple(pool[one] for one in sorted(search.best or ()))
        covered = _covered([item for item in pool if item.what != "setting"], chosen)
        made = self._made(chosen)
        return _Found(chosen, made, search.best is not None, search.minimal, covered, self._surely, search.whole)

    def _things(self, pool: Sequence[Promotion], report: DebugReport) -> Things:
        gains, size = expected_gains(report), self._tried.made[0].file_bytes
        usual = sum(gains(item) for item in pool) / len(pool)
        parts = [grown(item, self._params, self._view) for item in pool]

        def price(chosen: Chosen) -> float:
            """A weight that two of them raise grows once."""
            weights: dict[str, float] = {}
            for one in chosen:
                weights |= parts[one]
            return size + sum(weights.values())

        return Things(tuple(usual if item.what == "setting" else gains(item) for item in pool), price)

    def _trial(self, chosen: Sequence[Promotion]) -> Trial:
        params = combined(chosen, self._params, self._view)
        if self._tried.spent and not self._tried.knows(params):
            raise Spent
        candidate = self._tried.make(params)
        return Trial(self._good(candidate), self._tried.noise(candidate), float(candidate.file_bytes))

    def _made(self, chosen: Sequence[Promotion]) -> Candidate:
        return self._tried.make(combined(chosen, self._params, self._view))

    def _good(self, candidate: Candidate) -> bool:
        return self._tried.met_on(candidate, CHOOSE, surely=self._surely)

    def _cost(self, found: _Found) -> tuple[int, int, int, int]:
        """Placement first: a graph in many pieces is no repair."""
        placed = self._tried.placed(found.candidate)
        pieces, left = (placed.partitions, placed.left_nodes) if placed else (0, 0)
        return left, pieces, found.candidate.file_bytes, len(found.chosen)


def _covered(offered: Sequence[Promotion], chosen: Sequence[Promotion]) -> float:
    """The part of the noise whose makers are raised now, also those that another raise took along."""
    excluded = {name for item in chosen for name in item.excludes}
    widened = {one for item in chosen for one in item.overrides}
    return sum(item.origin_share for item in offered if {*item.excludes} <= excluded and {*item.overrides} <= widened)


def _levels(params: QuantizeParams, options: FixOptions) -> list[Level]:
    """A CPU runs float faster than 16-bit pairs; an NPU keeps 16-bit tensors in one piece, and float may cut it."""
    static = steps_of(params.precision)[0].kind == "static"
    if not static or options.raise_to == "float":
        return ["float"]
    if options.raise_to == "16bit":
        return ["16bit"]
    return ["float"] if options.target is None or options.target.device == "cpu" else ["16bit", "float"]


def _verdict(tried: Candidates, found: _Found) -> tuple[VerdictKind, str | None]:
    if not found.met:
        return VerdictKind.NOT_MET, f"the target is not met, {_why_not(tried, found.whole)}"
    if not tried.met_on(found.candidate, CHECK, surely=False):
        return (
            VerdictKind.NOT_MET,
            "the target is met on the samples that chose, but not on the ones kept for the check",
        )
    if tried.options.target_drop is not None and not tried.met_on(found.candidate, CHECK, surely=True):
        return VerdictKind.INCONCLUSIVE, _not_proven(tried.score(found.candidate, CHECK).candidate)
    return VerdictKind.MET if found.chosen else VerdictKind.ALREADY_MET, None


def _not_proven(score: FixScore) -> str:
    """It holds on the samples; how many more would say that it holds on others."""
    held = f"it holds on the {score.samples} samples kept for the check"
    if score.unbounded is not None:
        return f"{held}, but {score.unbounded}: declare it as the attribute `span` of the metric"
    if score.needed is None:
        return f"{held}, but just so: no number of samples would prove it if the drop is the one seen"
    enough = f"about {score.needed:,} would, so {2 * score.needed:,} in all"
    return f"{held}, which are too few to prove it for others: {enough}"


def _why_not(tried: Candidates, whole: bool) -> str:
    """Only where all that can be raised was raised at once, no other set is left to hope for."""
    best = min((noise for item in tried.made if (noise := tried.noise(item)) is not None), default=None)
    reached = f": the best of {tried.builds} candidates has {_decibels(best)}" if best is not None else ""
    raised = [item for item in tried.made if item.model is not None and tried.raised(item)]
    refused = f"; some could not be built: {tried.refused}" if tried.refused is not None else ""
    if tried.spent:
        return f"and the {tried.ended_by} was reached{'' if raised else ' before anything was raised'}{reached}"
    if not raised:
        return f"and nothing could be raised{reached}{refused}"
    return f"{'whatever is raised' if whole else 'by nothing that was tried'}{reached}{refused}"


def _decibels(noise: float) -> str:
    return f"{-10.0 * math.log10(noise):.1f} dB" if noise else "no noise"


def _result(tried: Candidates, found: _Found, start: Candidate) -> FixResult:
    status, reason = _verdict(tried, found)
    shown = [("quantized", start), *([("repaired", found.candidate)] if found.chosen else [])]
    front = _front(tried, found.candidate)
    timed = dict.fromkeys(item.number for item in (*(item for _, item in shown), *front[:_TIMED]))
    by_number = {item.number: item for item in tried.made}
    whole, *times = tried.times([by_number[number] for number in timed])
    p50 = dict(zip(timed, times, strict=True))
    scored = [
        _row(tried, name, 0 if item is start else len(found.chosen), item, p50[item.number]) for name, item in shown
    ]
    rows = [_float_row(tried, whole), *scored]
    return replace(
        _answer(tried, status, reason, rows),
        note=_note(tried, found, rows) if found.chosen else None,
        minimal=found.minimal,
        surely=found.surely,
        front=tuple(_front_row(tried, item, found.candidate, p50.get(item.number)) for item in front),
        raised=found.chosen,
        covered_share=found.covered,
        quantize=found.candidate.params,
    )


def _front(tried: Candidates, chosen: Candidate) -> list[Candidate]:
    """Those that no other one beats in both size and accuracy, the smallest first; of equals the chosen one."""
    known = [item for item in tried.made if item.model is not None and (tried.scored(item, CHOOSE) is not None)]
    known.sort(key=lambda item: (item.file_bytes, _lost(tried, item), item is not chosen, item.number))
    found: list[Candidate] = []
    for item in known:
        if not found or _lost(tried, item) < _lost(tried, found[-1]):
            found.append(item)
    return found


def _lost(tried: Candidates, item: Candidate) -> tuple[float, float]:
    """By the metric where there is one; else, and between equals, by the noise."""
    score, noise = tried.scored(item, CHOOSE), tried.noise(item)
    metric = 0.0 if score is None or score.metric is None else -score.metric
    return (metric if noise is not None else math.inf), (math.inf if noise is None else noise)


def _front_row(tried: Candidates, item: Candidate, chosen: Candidate, p50: float | None) -> FixRow:
    start = tried.made[0]
    name = "repaired" if item is chosen and item is not start else _name(item)
    score, check = tried.scored(item, CHOOSE), tried.scored(item, CHECK)
    return FixRow(name, tried.raised(item), item.file_bytes, score, check, p50, quantize=item.params)


def _name(item: Candidate) -> str:
    return f"candidate {item.number}" if item.number > 1 else "quantized"


def _so_far(tried: Candidates) -> FixResult:
    """What was tried, without asking anybody anything more."""
    rows = [
        FixRow(
            name=_name(item),
            raised=tried.raised(item),
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


def _note(tried: Candidates, found: _Found, rows: Sequence[FixRow]) -> str | None:
    words, share = [], rows[-1].file_bytes / rows[0].file_bytes
    if not found.minimal:
        words.append(f"the {tried.ended_by} was reached before each part had been left out once: it may do with less")
    if share >= _HARDLY_SMALLER:
        less = "another precision (w8a16, dynamic, fp16) may serve better"
        words.append(f"{share:.0%} of the float model's size is left: {less}")
    return "; ".join(words) or None


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
