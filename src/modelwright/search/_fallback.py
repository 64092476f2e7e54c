"""What runs when an EP is not there: the artifact of the first target is really opened on the next ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from modelwright import measure
from modelwright._dataclass import dataclass
from modelwright.errors import WrightError
from modelwright.measure import Arm, InputChoice
from modelwright.pipeline import BuildResult
from modelwright.store import Store
from modelwright.targets import parse_target

_LAST = "cpu"


@dataclass(frozen=True)
class FallbackStep:
    """With these targets `missing`, `target` is next. `same_file` says whether the artifact of the first target runs
    there; where it does not, the target's own champion is what to take, if there is one."""

    missing: tuple[str, ...]
    target: str
    same_file: bool
    take: str | None
    reason: str


def fallback_chain(builds: Sequence[BuildResult], inputs: InputChoice, store: Store) -> tuple[FallbackStep, ...]:
    """One target after the other is taken away; what cannot be asked here does not run here."""
    targets = [build.target for build in builds]
    line = targets if any(parse_target(name).device == "cpu" for name in targets) else [*targets, _LAST]
    steps = []
    for place, target in enumerate(line):
        fails = fails_on(builds[0], target, inputs, store)
        own = target if target in targets else None
        take = targets[0] if fails is None else own
        steps.append(FallbackStep(tuple(line[:place]), target, fails is None, take, fails or "opened and run"))
    return tuple(steps)


def fails_on(build: BuildResult, target: str, inputs: InputChoice, store: Store) -> str | None:
    """Why an artifact does not run on a target, asked in a child; None where it does."""
    component = build.components[0]
    fed = replace(inputs, recorded=inputs.recorded or component.inputs)
    with component.final.opened(store) as path:
        try:
            subject = measure.make_subject(Path(path), fed)
            arm = measure.ready_arm(Arm(str(path), "artifact"), subject, target, None)
        except WrightError as error:
            return f"{error.problem}: {error.cause}"
        runner = measure.UnitRunner(measure.unit_plan([arm]), fresh_processes=False)
        try:
            runner.opened(arm, 0)
            runner.answers(arm, 0)
        except WrightError as error:
            return f"{error.problem}: {error.cause}"
        finally:
            runner.close()
    return None
