"""One change of one model, from scratch: both sides are built twice in stores that have nothing, and held together."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from modelwright import measure
from modelwright._dataclass import dataclass
from modelwright._scratch import scratch
from modelwright.errors import WrightError
from modelwright.evidence import read_environment
from modelwright.graph import fingerprint, load
from modelwright.knowledge import ExperimentResult, ExperimentSide, ExperimentUnit, family_of, operators_of, read_change
from modelwright.measure import CompareOptions, InputChoice, UnitRecord
from modelwright.models import OnnxSource
from modelwright.pipeline import BuildFailure, RecipeChoices, resolve_recipe
from modelwright.search._variant import AxisChange, Variant
from modelwright.search._workshop import Job, Workshop, written
from modelwright.store import Store
from modelwright.targets import Placement, Target
from modelwright.vocabulary import OnProgress, Progress, silent

_FLOAT = "fp32"
_PRECISION = "precision"
# Where a graph goes and what it takes is asked here; whether its numbers are right is the business of a build.
_UNASKED = {"check": None, "compile": None}
_MOVED = {True: "displaced", False: "taken", None: "unmoved"}


@dataclass(frozen=True)
class ChangeQuestion:
    """`changes` are held against the model without them, both in float unless the precision is what changes. `name` is
    what the model is called in the answer; `expects` what a finding says about it."""

    changes: tuple[str, ...]
    target: Target
    model: Path
    name: str
    finding: str | None = None
    expects: str | None = None
    budget_s: float = 60.0
    min_effect: float = 0.02

    @property
    def variant(self) -> Variant:
        read = (read_change(text) for text in self.changes)
        return Variant(tuple(AxisChange(change.axis, change.value) for change in read))


def experiment(asked: ChangeQuestion, *, on_progress: OnProgress | None = None) -> ExperimentResult:
    """What the change does. A side that cannot be built, or an EP that cannot be asked, is `unknown`, with why."""
    tell = on_progress or silent
    source = OnnxSource(str(asked.model))
    choices = RecipeChoices(precision=_FLOAT)
    recipe = resolve_recipe(source, asked.target, choices, dict(_UNASKED))
    job = Job(source, asked.target, recipe, choices, dict(_UNASKED), InputChoice(), None, CompareOptions().by)
    with scratch("experiment") as folder, Store(Path(folder, "store")) as store, Workshop(job, store, tell) as shop:
        return _Experiment(asked, shop, tell).run()


class _Experiment:
    def __init__(self, asked: ChangeQuestion, shop: Workshop, tell: OnProgress) -> None:
        self.asked, self.shop, self.tell = asked, shop, tell

    def run(self) -> ExperimentResult:
        self.tell(Progress(f"building {self.asked.name} with and without {' '.join(self.asked.changes)}"))
        sides = (Variant(), self.asked.variant)
        for found in self.shop.made(sides):
            if isinstance(found, BuildFailure):
                return self._unknown(f"{found.error.problem}: {found.error.cause}")
        try:
            base, arm = (self._side(variant) for variant in sides)
        except _NobodyAsked as error:
            return self._unknown(str(error))
        if self.shop.identity(sides[0]) == self.shop.identity(sides[1]):
            return self._answer("noop", "the change leaves the same graph and session", base, arm)
        if base.left is not None and arm.left is not None:
            return self._placed(base, arm)
        return self._raced(base, arm)

    def _side(self, variant: Variant) -> ExperimentSide:
        """Built twice, so that one build that went wrong is seen."""
        file, again = self.shop.file(variant), self.shop.rebuilt(variant)
        builds = tuple(fingerprint(load(path)) for path in (file, again))
        placed = self.shop.placed(variant)
        if placed is not None and placed.status != "placed":
            raise _NobodyAsked(placed.reason or "the EP did not answer")
        return ExperimentSide(
            fingerprint=builds[0],
            builds=builds,
            operators=operators_of(file),
            left=None if placed is None else _left(placed),
            running=None if placed is None else placed.running,
        )

    def _placed(self, base: ExperimentSide, arm: ExperimentSide) -> ExperimentResult:
        assert base.left is not None
        assert arm.left is not None
        before, after = sum(base.left.values()), sum(arm.left.values())
        moved = None if before == after else after > before
        more = ", ".join(f"{count} {name}" for name, count in (Counter(arm.left) - Counter(base.left)).items())
        reason = f"{before} nodes are left to the CPU without it, {after} with it{f': {more}' if more else ''}"
        return replace(self._answer(_MOVED[moved], reason, base, arm), simulated=True)

    def _raced(self, base: ExperimentSide, arm: ExperimentSide) -> ExperimentResult:
        variant = self.asked.variant
        arms = [written(Variant(), self.shop.file(Variant())), written(variant, self.shop.file(variant))]
        options = CompareOptions(
            target=str(self.asked.target),
            budget_s=self.asked.budget_s,
            min_effect=self.asked.min_effect,
            allow_different=any(change.axis == _PRECISION for change in variant.changes),
        )
        try:
            found = measure.compare(arms, options, on_progress=self.tell)
        except WrightError as error:
            return self._unknown(f"{error.problem}: {error.cause}")
        result = found.arms[1]
        assert result.verdict is not None
        units = tuple(map(_unit, found.units))
        answer = self._answer(result.verdict.kind.value, result.sentence, base, arm)
        return replace(answer, speed=result.verdict, units=units, environment=found.environment)

    def _unknown(self, reason: str) -> ExperimentResult:
        return self._answer("unknown", reason, None, None)

    def _answer(
        self, word: str, reason: str, base: ExperimentSide | None, arm: ExperimentSide | None
    ) -> ExperimentResult:
        asked = self.asked
        return ExperimentResult(
            finding=asked.finding,
            change=asked.variant.label,
            target=str(asked.target),
            measure="speed" if asked.target.device == "cpu" else "placement",
            model=asked.name,
            family=family_of(operators_of(asked.model)),
            word=word,
            reason=reason,
            base=base,
            arm=arm,
            speed=None,
            units=(),
            simulated=False,
            environment=read_environment(),
        )


class _NobodyAsked(Exception):
    """The target's EP is not here, or broke."""


def _left(placed: Placement) -> dict[str, int]:
    return dict(sorted(Counter(node.op_type for node in placed.unsupported).items()))


def _unit(unit: UnitRecord) -> ExperimentUnit:
    return ExperimentUnit(unit.arm is None, unit.base_first, unit.base_ns, unit.arm_ns)
