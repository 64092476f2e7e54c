"""Why answers are no numbers, or other numbers than the reference's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from modelwright.answers._gather import Gathered, Refused, agreement_words, agrees, attempt, compared
from modelwright.answers._made import quantize_again
from modelwright.answers._rule import CauseRule, Lab, Shown
from modelwright.answers._types import TriedCure
from modelwright.diagnosis import Activation, DebugReport, WeightScore
from modelwright.targets import parse_target
from modelwright.vocabulary import Data

_MOST = 0.5
_NOT_FINITE = "NaN or infinity are among its answers"
_HALF = ("float16", "fp16")


def _bad_weights(found: Gathered) -> Shown | None:
    bad = () if found.weights is None else found.weights.not_finite
    if not bad:
        return None
    facts = tuple(f"{name} holds {count} numbers that are NaN or infinite" for name, count in bad)
    so = ", and so do the answers" if found.run is not None and found.run.not_finite else ""
    return Shown(facts, tuple(name for name, _ in bad), {"weights": ", ".join(name for name, _ in bad), "so": so})


def _bad_inputs(found: Gathered) -> Shown | None:
    """Made-up inputs are ours; of real ones nobody but their owner knows what should be there."""
    outcome = found.run
    if outcome is None or not outcome.fed_not_finite or not outcome.not_finite or found.complaint.inputs.data.random:
        return None
    names = ", ".join(outcome.fed_not_finite)
    facts = (f"{names} in the data holds NaN or infinity, {', '.join(outcome.not_finite)} in the answers",)
    return Shown(facts, outcome.fed_not_finite, {"inputs": names})


def _numbers_instead(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    tried = replace(found.complaint, inputs=replace(found.complaint.inputs, data=Data()))
    yield lab.runs("Feed it numbers", "`data` without them; made-up ones here", _NOT_FINITE, tried)


def _overflow(found: Gathered) -> Shown | None:
    """As it is computed, or as it is written: onnxruntime's CPU provider computes much of it in float32."""
    if found.model is None or found.model.precision.label not in _HALF or _bad_weights(found) is not None:
        return None
    bad = () if found.run is None else found.run.not_finite
    if bad:
        return Shown((f"{', '.join(bad)} holds NaN or infinity, and every weight is a number",), bad)
    report = found.debug
    return Shown((f"as it is written: {report.reason}",)) if report is not None and report.status == "failed" else None


def _in_float(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    """Without it nobody knows: a model may compute NaN in any precision."""
    words = ("Compute it in float32", "`precision` fp32", _NOT_FINITE)
    if found.complaint.reference is None:
        yield TriedCure(*words, "there is no float model to try", None, "give the float model as `reference`")
        return
    yield lab.runs(*words, replace(found.complaint, model=found.complaint.reference))


def _elsewhere(found: Gathered) -> Shown | None:
    """Numbers on the CPU and none on the target."""
    bad = () if found.run is None else found.run.not_finite
    if not bad or found.complaint.target.ep == "cpu" or _bad_weights(found) is not None:
        return None
    outcome = attempt(replace(found.complaint, target=parse_target("cpu")))
    if isinstance(outcome, Refused) or outcome.not_finite:
        return None
    return Shown(("the CPU computes numbers from the same inputs",), bad, {"target": str(found.complaint.target)})


def _lost(found: Gathered) -> DebugReport | None:
    """The report, where the answers are other ones."""
    report = found.debug
    return report if report is not None and agrees(report) is False else None


def _lacks_outputs(found: Gathered) -> Shown | None:
    missing = () if found.debug is None else found.debug.missing_outputs
    if not missing or found.model is None:
        return None
    has = ", ".join(value.name for value in found.model.outputs)
    return Shown((f"its outputs are {has}",), missing, {"outputs": ", ".join(missing)})


def _failed_its_gate(found: Gathered) -> Shown | None:
    judged = found.judged
    return Shown(judged.wrong) if judged is not None and judged.passed is False else None


def _saturates(found: Gathered) -> Shown | None:
    report = _lost(found)
    return Shown((agreement_words(report),)) if report is not None and report.saturated else None


def _again_good(found: Gathered) -> bool:
    return found.again is not None and agrees(found.again) is True


def _rows(report: DebugReport, *, clipped: bool) -> tuple[list[Activation], float]:
    rows = [row for row in report.originators if row.dtype is not None]
    mine = [row for row in rows if ((row.clip_noise_share or 0.0) > _MOST) is clipped]
    return mine, sum(row.origin_share or 0.0 for row in mine)


def _narrow(found: Gathered) -> Shown | None:
    report = _lost(found)
    if report is None or not _again_good(found):
        return None
    rows, share = _rows(report, clipped=True)
    if share < _MOST:
        return None
    return Shown(_words(rows, share, report), _names(rows), {"share": f"{share:.0%}", "tensors": _first(rows)})


def _wide(found: Gathered) -> Shown | None:
    report = _lost(found)
    if report is None or not _again_good(found) or _poor_weights(found):
        return None
    rows, share = _rows(report, clipped=False)
    if share < _MOST:
        return None
    return Shown(_words(rows, share, report), _names(rows), {"share": f"{share:.0%}", "tensors": _first(rows)})


def _words(rows: list[Activation], share: float, report: DebugReport) -> tuple[str, ...]:
    return (agreement_words(report), f"{share:.0%} of the noise is made by {len(rows)} tensors: {_first(rows)}")


def _first(rows: list[Activation]) -> str:
    return ", ".join(row.tensor_name for row in rows[:3])


def _names(rows: list[Activation]) -> tuple[str, ...]:
    return tuple(row.operator for row in rows[:8])


def _poor_weights(found: Gathered) -> list[WeightScore]:
    """With one scale for the whole tensor, where the channels are of very different size."""
    rows = () if found.debug is None else found.debug.weights
    return [row for row in rows if row.granularity == "tensor" and row.weight_name in found.uneven]


def _outlier(found: Gathered) -> Shown | None:
    report = _lost(found)
    poor = [] if report is None else _poor_weights(found)
    if report is None or not poor:
        return None
    facts = tuple(
        f"the largest channel of {row.weight_name} is {found.uneven[row.weight_name]:.0f} times the middle one"
        for row in poor
    )
    names = tuple(row.weight_name for row in poor)
    return Shown((agreement_words(report), *facts), names, {"weights": ", ".join(names[:3])})


def _restless(found: Gathered) -> Shown | None:
    """Made again on this data it is as bad: it is not the calibration."""
    report = _lost(found)
    if report is None or found.again is None or _again_good(found) or _poor_weights(found):
        return None
    rows = list(report.originators[:3])
    named = {"tensors": _first(rows)}
    again = f"calibrated again on this data: {agreement_words(found.again)}"
    return Shown((agreement_words(report), again), _names(rows), named)


def _remade(found: Gathered, lab: Lab, title: str, how: str, **changes: object) -> Iterator[TriedCure]:
    assert found.debug is not None
    made = quantize_again(found.complaint, found.model, lab.store, **changes)
    before = agreement_words(found.debug)
    if made is None:
        yield TriedCure(title, how, before, "it could not be made", False)
        return
    report = compared(found.complaint, made)
    yield TriedCure(title, how, before, agreement_words(report), agrees(report))


def _calibrated(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    yield from _remade(found, lab, "Calibrate on this data", f"`data` {found.complaint.inputs.data.source}")


def _by_channel(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    yield from _remade(found, lab, "A scale for each channel of the weights", "per_channel = true", per_channel=True)


def _unsaturated(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    yield from _remade(found, lab, "Weights that cannot saturate", "reduce_range = true", reduce_range=True)


def _sixteen(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    yield from _remade(found, lab, "16 bits for the activations", "`precision` w8a16", precision="w8a16")


RULES = (
    CauseRule(
        "weight-not-finite",
        "wrong",
        "among the numbers of {weights} are NaN or infinity{so}",
        _bad_weights,
        remedy="take the weights from where they come from again; what is computed from these cannot be right",
    ),
    CauseRule(
        "inputs-not-finite",
        "wrong",
        "among the numbers of the input {inputs} are NaN or infinity, and so among the answers",
        _bad_inputs,
        _numbers_instead,
        remedy="take such samples out of the `data`",
    ),
    CauseRule(
        "fp16-overflow",
        "wrong",
        "numbers inside the model are too large for float16, and end as infinity or NaN",
        _overflow,
        _in_float,
        cites=("docs/quantize.md",),
        proven=True,
    ),
    CauseRule(
        "target-computes-no-numbers", "wrong", "{target} computes NaN where the CPU computes numbers", _elsewhere
    ),
    CauseRule(
        "output-missing",
        "wrong",
        "the reference answers with {outputs} too, and this model does not",
        _lacks_outputs,
        remedy="export it with the outputs of its reference, under the same names",
    ),
    CauseRule(
        "saturating-kernels",
        "wrong",
        "products of 8 bits saturate on this CPU",
        _saturates,
        _unsaturated,
        cites=("docs/targets.md",),
    ),
    CauseRule(
        "outlier-channel",
        "wrong",
        "{weights} have channels of very different size and one scale for all of them, so small ones are lost",
        _outlier,
        _by_channel,
        cites=("docs/quantize.md",),
    ),
    CauseRule(
        "ranges-too-narrow",
        "wrong",
        "the stored ranges cut off what the data holds: {share} of the noise is clipped at {tensors}",
        _narrow,
        _calibrated,
        cites=("docs/data.md",),
    ),
    CauseRule(
        "ranges-too-wide",
        "wrong",
        "the stored ranges are too wide for the data: {share} of the noise is rounding at {tensors}",
        _wide,
        _calibrated,
        cites=("docs/data.md",),
    ),
    CauseRule(
        "bits-too-few",
        "wrong",
        "8 bits are too few for {tensors}, however it is calibrated",
        _restless,
        _sixteen,
        cites=("docs/debug.md",),
        remedy="`wright debug --fix` finds the smallest repair",
    ),
    CauseRule(
        "gate-failed",
        "wrong",
        "the build said of itself, when it was made, that it is not good enough",
        _failed_its_gate,
        cites=("docs/build.md",),
        remedy="`wright debug --fix` finds the smallest repair; `wright build` with another `precision` makes another",
    ),
)
