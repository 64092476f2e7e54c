"""Every variant really opened and run, here and in the runtimes that were named, on the same inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright import measure
from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.answers.ship._types import HERE, ShippedVariant, VariantTrial
from modelwright.errors import WrightError
from modelwright.measure import Arm, InputChoice, Outputs, ReadyArm, Subject
from modelwright.metrics import leaves
from modelwright.stages.validate import judged_as
from modelwright.vocabulary import Data, OnProgress, Progress

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")

FEWEST = 3
"""So many different inputs a variant must have seen."""


@dataclass(frozen=True, eq=False)
class _Ran:
    engine: str
    onnxruntime: str
    simulated: bool
    answers: Outputs


@dataclass(frozen=True)
class _AskedVariant:
    """A graph of a variant, in a place."""

    variant: ShippedVariant
    component: str
    place: str

    def arm(self, plan: TrialPlan, subject: Subject) -> ReadyArm:
        path = next(model.path for model in self.variant.models if model.component == self.component)
        runtime = None if self.place == HERE else self.place
        arm = Arm(str(plan.package / path), self.variant.target, runtime=runtime)
        return measure.ready_arm(arm, subject, self.variant.target, None)


@dataclass(frozen=True)
class TrialPlan:
    """What is asked: variants of a package folder, in these places, on inputs of this data. `reference` is the one that
    the others are held against, as it answers here; `skip` says of some why they are not run here."""

    package: Path
    variants: tuple[ShippedVariant, ...]
    runtimes: tuple[str, ...]
    data: Data
    reference: str | None
    skip: Mapping[str, str]


def run_trials(plan: TrialPlan, tell: OnProgress) -> tuple[VariantTrial, ...]:
    """The reference comes first: its answers are what the others' are held against."""
    ordered = sorted(plan.variants, key=lambda variant: variant.target != plan.reference)
    found: list[VariantTrial] = []
    for component in [model.component for model in ordered[0].models]:
        fed, known = subjects(plan, component), list[Outputs]()
        for variant in ordered:
            for place in (HERE, *plan.runtimes):
                tell(Progress(f"running {variant.target} {place if place == HERE else f'in {place}'}"))
                found.append(_trial(plan, _AskedVariant(variant, component, place), fed, known))
    return tuple(found)


def subjects(plan: TrialPlan, component: str) -> list[Subject]:
    """What all variants are fed, in the sizes that any of them has fixed: rows of the data, or made up."""
    paths = [plan.package / model.path for one in plan.variants for model in one.models if model.component == component]
    found: dict[str, Subject] = {}
    for seed in range(FEWEST):
        data = replace(plan.data, seed=plan.data.seed + seed, samples=None)
        subject = measure.make_subject(paths[0], InputChoice(data), like=paths[1:])
        found.setdefault(measure.inputs_digest(subject), subject)
    return list(found.values())


def _trial(plan: TrialPlan, asked: _AskedVariant, fed: Sequence[Subject], known: list[Outputs]) -> VariantTrial:
    """`known` are the answers of the reference, which itself gives them."""
    target = asked.variant.target
    if asked.place == HERE and target in plan.skip:
        return VariantTrial(target, asked.place, ran=False, reason=plan.skip[target])
    try:
        ran = _run([asked.arm(plan, subject) for subject in fed])
    except WrightError as error:
        return VariantTrial(target, asked.place, ran=False, reason=f"{error.problem}: {error.cause}")
    if target == plan.reference and asked.place == HERE:
        known.extend(one.answers for one in ran)
        unlike, compared = None, False
    else:
        unlike, compared = _unlike(plan, target, known, ran), bool(known)
    return VariantTrial(
        target,
        asked.place,
        ran=True,
        reason=None,
        engine=ran[0].engine,
        onnxruntime=ran[0].onnxruntime,
        simulated=ran[0].simulated,
        inputs=len(ran),
        finite=all(_finite(one.answers) for one in ran),
        different=None if unlike is None else unlike.different,
        nothing=unlike is not None and unlike.nothing,
        compared=compared,
        fed_finite=all(_finite(subject.feeds) for subject in fed),
    )


def _unlike(plan: TrialPlan, target: str, known: Sequence[Outputs], ran: Sequence[_Ran]) -> measure.OutputCheck | None:
    """How the answers are not those of the reference, by the looser of both precisions."""
    precisions = [judged_as(one.precision) for one in plan.variants if one.target in (target, plan.reference)]
    pairs = zip(known, ran, strict=False)
    return measure.first_unlike(measure.check_outputs(theirs, ours.answers, *precisions) for theirs, ours in pairs)


def _run(arms: Sequence[ReadyArm]) -> list[_Ran]:
    """One after the other, in one child."""
    runner, found = measure.UnitRunner(measure.unit_plan(arms), fresh_processes=False), []
    try:
        for arm in arms:
            facts = runner.opened(arm, 0)
            found.append(_Ran(facts.engine, facts.onnxruntime, facts.simulated, runner.answers(arm, 0)))
    finally:
        runner.close()
    return found


def _finite(answers: Outputs) -> bool:
    return all(_is_finite(array) for _, array in leaves(answers))


def _is_finite(array: Any) -> bool:
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def worst_of(trials: Sequence[VariantTrial]) -> VariantTrial | None:
    """Of those that ran, one that says no, else the first."""
    ran = [trial for trial in trials if trial.ran]
    bad = [trial for trial in ran if trial.finite is False or trial.different is not None]
    return min(bad, key=lambda trial: trial.nothing, default=next(iter(ran), None))
