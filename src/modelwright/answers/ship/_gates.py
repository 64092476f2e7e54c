"""Six questions about a package. Pure: what was built, run and compared comes in, answers with reasons come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from modelwright._dataclass import dataclass
from modelwright.answers.ship._trials import FEWEST, worst_of
from modelwright.answers.ship._types import (
    NOT_RUN,
    ChainStep,
    ChosenVariant,
    GateName,
    GateRow,
    ShippedVariant,
    VariantTrial,
)
from modelwright.pipeline import BuildFailure, BuildResult
from modelwright.vocabulary import weakest

_CPU_EP = "CPUExecutionProvider"
_MADE_UP = "only made-up inputs were fed, no real samples"
_ELSEWHERE = "name a runtime that opens it with `runtimes`, or excuse it with `waivers`"
_FIXES: dict[GateName, str] = {
    "complete": "add cpu to the `targets`",
    "accuracy": "give real samples as `data`, and what may be lost as `max_drop`",
    "speed": "name a worker that has the device with `speed_on`, or excuse it with `waivers`",
    "inputs": f"give {FEWEST} real samples or more as `data`",
    "agreement": _ELSEWHERE,
    "chain": _ELSEWHERE,
}


@dataclass(frozen=True)
class SpeedAnswer:
    """Whether a variant is no slower than the CPU variant, on a machine that has its device; None: not run, why."""

    passed: bool | None
    reason: str
    record: str | None = None
    fix: str | None = None


@dataclass(frozen=True)
class GateFacts:
    """All that the gates look at. `real` says whether the inputs were."""

    builds: Mapping[str, BuildResult]
    failed: Sequence[BuildFailure]
    variants: tuple[ShippedVariant, ...]
    trials: tuple[VariantTrial, ...]
    speeds: Mapping[str, SpeedAnswer]
    chain: tuple[ChainStep, ...]
    chosen: tuple[ChosenVariant, ...]
    real: bool
    reference: str | None

    def of(self, target: str) -> list[VariantTrial]:
        return [trial for trial in self.trials if trial.target == target]


def gate_rows(found: GateFacts) -> tuple[GateRow, ...]:
    gates = (_complete, _accuracy, _speed, _inputs, _agreement, _chain)
    return tuple(_with_fix(row) for gate in gates for row in gate(found))


def _with_fix(row: GateRow) -> GateRow:
    """What nobody could say has a next step, for each gate the same unless it knows a better one."""
    return row if row.passed is not None or row.fix is not None else replace(row, fix=_FIXES[row.gate])


def cpu_variant(variants: Sequence[ShippedVariant]) -> ShippedVariant | None:
    """The one that every machine can run."""
    return next((variant for variant in variants if variant.ep == _CPU_EP), None)


def _complete(found: GateFacts) -> Iterator[GateRow]:
    for one in found.failed:
        yield GateRow("complete", one.target, False, f"it was not built: {one.error.problem}: {one.error.cause}")
    if cpu_variant(found.variants) is None:
        yield GateRow("complete", None, False, "there is no variant for a plain CPU", fix="add cpu to the `targets`")
    else:
        count = f"{len(found.variants)} variants, one of them" if len(found.variants) > 1 else "one variant,"
        yield GateRow("complete", None, True, f"{count} for any CPU")


def _accuracy(found: GateFacts) -> Iterator[GateRow]:
    for target, build in found.builds.items():
        yield GateRow("accuracy", target, *_accurate(build))


def _accurate(build: BuildResult) -> tuple[bool | None, str]:
    """What the build's gate said, and the metric where a drop was allowed for."""
    checks = [check for part in build.components for check in part.validation.checks]
    passed = weakest([part.validation.passed for part in build.components])
    if build.accuracy is not None:
        passed = weakest([passed, build.accuracy.passed])
        return passed, "; ".join(build.accuracy.reasons) or f"no more than {build.accuracy.max_drop} lost"
    notes = [part.validation.note for part in build.components if part.validation.note]
    wrong = [f"{check.name}: {check.detail}" for check in checks if check.passed is passed]
    if passed is True:
        worst = [part.validation.worst_cosine for part in build.components if part.validation.worst_cosine is not None]
        return True, f"close to the export: cosine {min(worst):.5f}" if worst else "equal to the export"
    return passed, "; ".join([*notes, *wrong][:2]) or "the build could not judge it"


def _speed(found: GateFacts) -> Iterator[GateRow]:
    for variant in found.variants:
        answer = found.speeds.get(variant.target)
        if answer is not None:
            yield GateRow("speed", variant.target, answer.passed, answer.reason, answer.record, answer.fix)


def _inputs(found: GateFacts) -> Iterator[GateRow]:
    for variant in found.variants:
        passed, reason = _fed(found, variant.target)
        fix = _ELSEWHERE if passed is None and reason.startswith(NOT_RUN) else None
        yield GateRow("inputs", variant.target, passed, reason, fix=fix)


def _fed(found: GateFacts, target: str) -> tuple[bool | None, str]:
    trials = found.of(target)
    worst = worst_of(trials)
    if worst is None:
        return None, _why_not(trials)
    if worst.finite is False and not worst.fed_finite:
        return None, "the samples hold NaN or infinity themselves"
    if worst.finite is False:
        return False, f"NaN or infinity came out on {worst.engine}"
    if not found.real:
        return None, _MADE_UP
    if worst.inputs < FEWEST:
        return None, f"the data has {worst.inputs} different of the {FEWEST} inputs that are needed"
    return True, f"{worst.inputs} real inputs, all answers finite, on {worst.engine}{_simulated(worst)}"


def _agreement(found: GateFacts) -> Iterator[GateRow]:
    for variant in found.variants:
        if variant.target != found.reference:
            yield GateRow("agreement", variant.target, *_agrees(found, variant.target))


def _agrees(found: GateFacts, target: str) -> tuple[bool | None, str]:
    if found.reference is None:
        return None, "there is no CPU variant to agree with"
    compared = [trial for trial in found.of(target) if trial.compared]
    worst = worst_of(compared)
    if worst is None:
        return None, _why_not(found.of(target))
    if worst.nothing:
        return None, f"nobody can tell on {worst.engine}: {worst.different}"
    if worst.different is not None:
        return False, f"other answers than {found.reference} on {worst.engine}: {worst.different}"
    return True, f"answers as {found.reference} does, {worst.inputs} inputs, on {worst.engine}{_simulated(worst)}"


def _chain(found: GateFacts) -> Iterator[GateRow]:
    for step in found.chain:
        yield GateRow("chain", step.expected, *_step(found, step))
    for one in found.chosen:
        if not one.ran:
            words = f"in {one.place} the selector gets nothing to run: {one.reason}"
            yield GateRow("chain", one.chosen, False, words)


def _step(found: GateFacts, step: ChainStep) -> tuple[bool | None, str]:
    machine = f"without {', '.join(step.missing)}" if step.missing else "with everything"
    if step.chosen != step.expected:
        return False, f"{machine} the selector takes {step.chosen}, not {step.expected}"
    ran = next((trial for trial in found.of(step.expected) if trial.ran), None)
    if ran is None:
        return None, f"{machine} the selector takes it; nobody could open it: {_why_not(found.of(step.expected))}"
    return True, f"{machine} the selector takes it; opened and run on {ran.engine}{_simulated(ran)}"


def _why_not(trials: Sequence[VariantTrial]) -> str:
    reasons = dict.fromkeys(trial.reason for trial in trials if trial.reason)
    return "not run: " + ("; ".join(reasons) or "nobody was asked")


def _simulated(trial: VariantTrial) -> str:
    return " (a simulator)" if trial.simulated else ""
