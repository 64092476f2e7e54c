"""From measured scores to the answer. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.evaluation._run import Measured, Scored
from modelwright.evaluation._types import EvalOptions, EvalOutput, EvalResult, EvalStatus, SampleScore, Values
from modelwright.evaluation.tasks import Metric
from modelwright.judge import SAID, Allowance, Paired, VerdictKind, paired, worst
from modelwright.metrics import EMPTY, Aggregate, Summary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

Claim = tuple[VerdictKind, str]
_PARALLEL = 1 - 1e-12
_OTHER_UNIT = "points are said of shares, and {metric} is no share (its unit: {unit}); say the drop in % or as a number"


def judge(found: Measured, task: str | None, options: EvalOptions) -> EvalResult:
    values = _values(found)
    comparison = _comparison(found, values, options)
    claims = [*_failed_samples(found), *_accuracy(found, values, comparison, options), *_gates(found, options)]
    verdict = worst(kind for kind, _ in claims)
    return EvalResult(
        status="complete",
        task=task,
        metric=found.metric,
        max_drop=str(options.max_drop) if options.max_drop else None,
        verdict=verdict,
        reasons=tuple(reason for kind, reason in claims if kind is verdict or kind is not VerdictKind.PASS),
        warnings=tuple(_warnings(found, values)),
        candidate=found.candidate,
        reference=found.reference,
        data=found.data,
        values=values,
        comparison=comparison,
        outputs=found.outputs,
        failures=found.failures,
        scores=_scores(found),
    )


def unjudged(found: Measured, task: str | None, options: EvalOptions, status: EvalStatus, *why: str) -> EvalResult:
    """The numbers of samples that are not all that were asked for: whoever stopped may have liked what was there."""
    return replace(judge(found, task, options), status=status, verdict=None, reasons=why)


def amount(value: float, metric: Metric) -> str:
    """A difference as people say it: points for shares, else in the metric's unit."""
    return f"{100 * value:.2f} points" if metric.unit == "fraction" else f"{value:.4g}"


def _values(found: Measured) -> Values | None:
    if found.scored is None or found.metric is None:
        return None
    ours, theirs = found.scored
    drop = None
    if ours.value is not None and theirs.value is not None:
        drop = (theirs.value - ours.value) * (1 if found.metric.higher_is_better else -1)
    missing = [name for name, side in (("candidate", ours), ("reference", theirs)) if side.value is None]
    return Values(
        candidate=ours.value,
        reference=theirs.value,
        drop=drop,
        reason=f"samples of the {' and the '.join(missing)} failed" if missing else None,
        more={name: (ours.more.get(name), theirs.more.get(name)) for name in {**theirs.more, **ours.more}},
    )


def _comparison(found: Measured, values: Values | None, options: EvalOptions) -> Paired | None:
    if found.scored is None or values is None or values.drop is None or found.metric is None:
        return None
    sign = 1.0 if found.metric.higher_is_better else -1.0
    allowed = options.max_drop
    return paired(
        sign * found.scored[1].contributions,
        sign * found.scored[0].contributions,
        margin=allowed.amount if allowed else None,
        relative=allowed.relative if allowed else False,
        span=_span(found.metric, *found.scored),
        alpha=options.alpha,
    )


def _span(metric: Metric, ours: Scored, theirs: Scored) -> float | None:
    """Of a mean, what the metric or the user says. Parts of another metric have no sharp bound: what is seen counts."""
    if metric.form == "mean" or theirs.span is None:
        return theirs.span
    return max(theirs.span, float(np.abs(theirs.contributions - ours.contributions).max()))


def _failed_samples(found: Measured) -> Iterator[Claim]:
    ours = [failure for failure in found.failures if failure.side == "candidate"]
    theirs = [failure for failure in found.failures if failure.side == "reference"]
    total = found.data.selected
    if ours:
        yield VerdictKind.FAIL, f"the candidate failed on {len(ours)} of {total} samples: {ours[0].reason}"
    if theirs:
        yield (
            VerdictKind.INCONCLUSIVE,
            f"the reference itself failed on {len(theirs)} of {total} samples: {theirs[0].reason}",
        )


def _accuracy(
    found: Measured, values: Values | None, comparison: Paired | None, options: EvalOptions
) -> Iterator[Claim]:
    if options.max_drop is None or comparison is None or values is None or found.metric is None:
        return
    if options.max_drop.points and not _in_points(found.metric, comparison):
        yield VerdictKind.INCONCLUSIVE, _OTHER_UNIT.format(metric=found.metric.name, unit=found.metric.unit)
        return
    if comparison.verdict is None or not comparison.margin:
        yield VerdictKind.INCONCLUSIVE, f"{options.max_drop} of a reference of 0 is no drop to measure against"
        return
    guess = _no_better_than_chance(found, values)
    if guess is not None:
        yield VerdictKind.INCONCLUSIVE, guess
        return
    yield comparison.verdict, _sentence(comparison, values, found.metric, options.max_drop)


def _in_points(metric: Metric, found: Paired) -> bool:
    """A point is a hundredth of what lies between 0 and 1; of other metrics their span says whether they do."""
    return metric.unit in ("fraction", "correlation") or (found.span is not None and found.span <= 1.0)


def _sentence(found: Paired, values: Values, metric: Metric, allowed: Allowance) -> str:
    assert values.drop is not None
    assert found.margin is not None
    limit = f"{allowed} ({amount(found.margin, metric)})" if allowed.relative else amount(found.margin, metric)
    if found.verdict in (VerdictKind.PASS, VerdictKind.FAIL):
        bound = _bound(found.high if found.verdict is VerdictKind.PASS else found.low, metric)
        proven = SAID[found.verdict].words.format(metric=metric.name, bound=bound, limit=limit)
        return f"{100 * (1 - found.alpha):g} % sure that {proven}"
    words = f"{found.samples:,} samples cannot decide about {limit}: {found.reason or _reach(found, metric)}"
    more = _way_out(found, metric) if found.span is None else needed_words(found, metric)
    return f"{words}; {more}" if more else words


def _reach(found: Paired, metric: Metric) -> str:
    return f"the drop of {metric.name} may be anything from {_bound(found.low, metric)} to {_bound(found.high, metric)}"


def _bound(value: float | None, metric: Metric) -> str:
    return "unknown" if value is None else amount(value, metric)


def _way_out(found: Paired, metric: Metric) -> str:
    return (
        f"if you know it, declare it as `span`, or as the attribute of your own function; the most that one sample of "
        f"{metric.name} lost here is {found.worst:.4g}"
    )


def needed_words(found: Paired, metric: Metric) -> str:
    """How many samples would decide, and about what these can."""
    words = ", ".join(_enough(found, metric))
    words = f"{words} (90 % power)" if words else ""
    if found.resolves is not None:
        words += f"{', ' if words else ''}{found.samples:,} decide about {amount(found.resolves, metric)}"
    return words


def _enough(found: Paired, metric: Metric) -> Iterator[str]:
    if found.needed:
        yield f"about {found.needed:,} samples would if nothing is lost"
    if found.low is None or found.seen <= 0.0:
        return
    if found.needed_at_drop is None:
        yield f"no number would if the drop is the {amount(found.seen, metric)} seen"
    else:
        yield f"about {found.needed_at_drop:,} if it is the {amount(found.seen, metric)} seen"


def _no_better_than_chance(found: Measured, values: Values) -> str | None:
    if found.chance is None or values.reference is None or values.reference > found.chance:
        return None
    return (
        f"the reference itself scores {values.reference:.3f}, and guessing scores {found.chance:.3f}: "
        "the labels, the order of the classes or the pre-processing do not fit the model"
    )


def _gates(found: Measured, options: EvalOptions) -> Iterator[Claim]:
    if not options.outputs:
        return
    gated = (options.min_cosine, options.min_sqnr_db) != (None, None)
    if gated and not found.outputs:
        yield VerdictKind.INCONCLUSIVE, "no output was compared"
    for output in found.outputs:
        unscored = _without_score(output)
        if unscored is not None:
            yield VerdictKind.FAIL, unscored
        elif gated and output.scores is not None and output.scores.identical == output.scores.samples:
            yield _identical(output.output, output.scores)
        else:
            yield from (*_cosine_gate(output, options), *_sqnr_gate(output, options))


def _without_score(output: EvalOutput) -> str | None:
    found = output.scores
    if output.problem is not None or found is None:
        return f"output {output.output}: {output.problem}"
    words = f"output {output.output} has no score on {found.failed} of {found.samples} samples: {found.problem}"
    return words if found.failed else None


def _identical(output: str, found: Aggregate) -> Claim:
    """Nothing on both sides in every sample is the same, and no evidence of anything."""
    if found.cosine.worst is None and found.cosine.reason == EMPTY:
        return VerdictKind.INCONCLUSIVE, f"output {output}: nothing was compared: {EMPTY} in every sample"
    return VerdictKind.PASS, f"output {output}: identical on all samples"


def _cosine_gate(output: EvalOutput, options: EvalOptions) -> Iterator[Claim]:
    if options.min_cosine is not None and output.scores is not None:
        yield _gate(output.output, "cosine", output.scores.cosine, options.min_cosine, "")
        yield from _all_samples(output.output, output.scores.cosine, options.min_cosine)


def _all_samples(output: str, found: Summary, least: float) -> Iterator[Claim]:
    """Two numbers always point the same way: of answers of one number only all samples together have a direction."""
    if found.worst is not None and found.worst > _PARALLEL and found.pooled is not None and found.pooled < least:
        yield VerdictKind.FAIL, f"output {output}: cosine over all samples is {found.pooled:.5g}, {least:g} is asked"


def _sqnr_gate(output: EvalOutput, options: EvalOptions) -> Iterator[Claim]:
    if options.min_sqnr_db is not None and output.scores is not None:
        yield _gate(output.output, "SQNR", output.scores.sqnr_db, options.min_sqnr_db, " dB")


def _gate(output: str, name: str, found: Any, least: float, unit: str) -> Claim:
    """The worst sample decides."""
    if found.worst is None:
        return VerdictKind.FAIL, f"output {output}: no {name}: {found.reason}"
    verdict = VerdictKind.PASS if found.worst >= least else VerdictKind.FAIL
    return verdict, f"output {output}: {name} of the worst sample is {found.worst:.5g}{unit}, {least:g}{unit} is asked"


def _warnings(found: Measured, values: Values | None) -> Iterator[str]:
    if found.data.kind == "random":
        yield "the inputs are made up: they say nothing about accuracy on real data"
    if values is not None and values.drop is not None:
        guess = _no_better_than_chance(found, values)
        if guess is not None:
            yield guess
    for bound in (found.candidate, found.reference):
        if bound.simulated:
            yield f"{bound.target} is simulated on this machine; the device may round differently"


def _scores(found: Measured) -> tuple[SampleScore, ...]:
    if found.scored is None:
        return ()
    failed = {(failure.index, failure.side) for failure in found.failures}
    ours, theirs = (_known(side.contributions) for side in found.scored)
    return tuple(
        SampleScore(
            index,
            None if (index, "candidate") in failed else mine,
            None if (index, "reference") in failed else other,
        )
        for index, mine, other in zip(found.indexes, ours, theirs, strict=True)
    )


def _known(values: NDArray[Any]) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in np.asarray(values)]
