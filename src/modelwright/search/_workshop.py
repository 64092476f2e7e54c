"""Where variants are made and opened: the pipeline's builds, the target's placement, the sessions that take turns."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from modelwright import measure
from modelwright._dataclass import dataclass
from modelwright._json import digest
from modelwright._scratch import scratch
from modelwright.graph import fingerprint, load, summary
from modelwright.knowledge import GraphFacts, graph_facts
from modelwright.measure import Arm, InputChoice, Outputs, ReadyArm, Subject, UnitRecord
from modelwright.models import HfSource, OnnxSource
from modelwright.pipeline import (
    BuildFailure,
    BuildResult,
    Built,
    Layer,
    Recipe,
    RecipeChoices,
    build,
    build_all,
    resolve_recipe,
)
from modelwright.plans import ModelInput, Node, run_node
from modelwright.search._space import Surroundings, compiled, optimized, precision_of, require_single, session_of
from modelwright.search._variant import AxisChange, Variant
from modelwright.stages.optimize import OPTIMIZE, try_passes
from modelwright.stages.place import PLACE, PlaceParams
from modelwright.store import Store
from modelwright.targets import EnergyZone, Placement, SessionFacts, Target, target_fails, usable_cpus
from modelwright.vocabulary import OnProgress

_WEIGHED = 3


@dataclass(frozen=True)
class Job:
    """What is tuned: the model, for which target, with what was said about its recipe (`choices` beside a file, `layer`
    in it), and what it is fed. `pinned` are settings of every session; the energy of `zones` is read, if there are
    any."""

    source: OnnxSource | HfSource
    target: Target
    recipe: Recipe
    choices: RecipeChoices
    layer: Layer
    inputs: InputChoice
    threads: int | None
    by: tuple[float, ...]
    pinned: tuple[AxisChange, ...] = ()
    zones: tuple[EnergyZone, ...] = ()


class Workshop:
    """Everything it makes goes through the store, so what was made before is only looked up. Close it."""

    def __init__(self, job: Job, store: Store, say: OnProgress) -> None:
        self.job, self._store, self._say = job, store, say
        self._built: dict[str, BuildResult | BuildFailure] = {}
        self._files: dict[str, Path] = {}
        self._arms: dict[str, ReadyArm] = {}
        self._fresh: dict[str, Path] = {}
        self._runner: measure.UnitRunner | None = None
        self.graph = GraphFacts({}, "other")
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Workshop:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            self._runner.close()
        self._stack.close()

    # --- making -------------------------------------------------------------------------------------------------------

    def recipe_of(self, variant: Variant) -> Recipe:
        """The baseline's recipe with the changes of the variant that concern the artifact."""
        recipe, precision = self.job.recipe, precision_of(variant)
        if precision is not None:
            choices = replace(self.job.choices, precision=precision)
            recipe = resolve_recipe(self.job.source, self.job.target, choices, self.job.layer)
        # One that the target fails on is out; where it fails is not asked of every variant.
        check = None if recipe.check is None else replace(recipe.check, look=variant == Variant())
        compile_ = compiled(recipe, variant, self.job.target)
        return replace(recipe, optimize=optimized(recipe.optimize, variant), compile=compile_, check=check)

    def made(self, variants: Iterable[Variant]) -> list[BuildResult | BuildFailure]:
        """A build for each, side by side; variants that are one recipe are one build. Passes whose operators the target
        does not claim are let through: its placement tells."""
        wanted = {variant: self.recipe_of(variant) for variant in variants}
        new = {_mark(recipe): recipe for recipe in wanted.values() if _mark(recipe) not in self._built}
        if new:
            found = build_all(
                self.job.source, tuple(new.values()), store=self._store, on_progress=self._say, force=True
            )
            self._built |= zip(new, found, strict=True)
        return [self._built[_mark(recipe)] for recipe in wanted.values()]

    def surroundings(self) -> Surroundings:
        """Of the baseline, which is made first: what is wrong with the model, its data or the recipe shows here."""
        (found,) = self.made((Variant(),))
        if isinstance(found, BuildFailure):
            raise found.error
        require_single([component.name for component in found.components])
        (component,) = found.components
        path = Path(self._stack.enter_context(_float_model(component).opened(self._store)))
        effects = try_passes(path)
        self.graph = graph_facts(path, effects)
        firing = tuple(effect.name for effect in effects if effect.fired and effect.problem is None)
        cpus = self.job.threads or max(1, int(usable_cpus()))
        return Surroundings(_opset(path), firing, cpus)

    def file(self, variant: Variant) -> Path:
        """The model of a variant that was made."""
        if variant.label not in self._files:
            (found,) = self.made((variant,))
            assert isinstance(found, BuildResult)
            final = found.components[0].final
            self._files[variant.label] = Path(self._stack.enter_context(final.opened(self._store)))
        return self._files[variant.label]

    def identity(self, variant: Variant) -> str:
        """Equal for two variants that would be the same thing measured twice."""
        return digest([_fingerprint(self.file(variant)), session_of((*self.job.pinned, *variant.changes))])

    def graph_of(self, variant: Variant) -> str:
        return _fingerprint(self.file(variant))

    def rebuilt(self, variant: Variant) -> Path:
        """The variant made anew, in a store that has nothing."""
        if variant.label not in self._fresh:
            place = Path(self._stack.enter_context(scratch("fresh", self._store.root.parent / "scratch")))
            store = self._stack.enter_context(Store(place / "store"))
            result = build(self.job.source, self.recipe_of(variant), store=store, on_progress=self._say, force=True)
            final = result.components[0].final
            self._fresh[variant.label] = Path(self._stack.enter_context(final.opened(store)))
        return self._fresh[variant.label]

    def is_reproduced(self, variant: Variant) -> bool:
        return _fingerprint(self.rebuilt(variant)) == _fingerprint(self.file(variant))

    # --- opening ------------------------------------------------------------------------------------------------------

    def placed(self, variant: Variant) -> Placement | None:
        """What the target's own partitioner makes of it; the CPU takes everything."""
        if self.job.target.device == "cpu":
            return None
        (found,) = self.made((variant,))
        assert isinstance(found, BuildResult)
        target = str(self.job.target)
        node = Node(PLACE, PlaceParams(target), {"model": found.components[0].final}, target)
        return run_node(self._store, node, on_progress=self._say).outcome

    def facts(self, variant: Variant) -> SessionFacts:
        return self.runner.opened(self.arm(variant), self._slot(variant))

    def answers(self, variant: Variant) -> Outputs:
        """Of the session that `facts` opened."""
        return self.runner.answers(self.arm(variant), self._slot(variant))

    def differs(self, variant: Variant, expected: Outputs) -> str | None:
        """How its answers are not the baseline's."""
        arm, base = self.arm(variant), self.arm(Variant())
        self.facts(variant)
        return measure.check_outputs(expected, self.answers(variant), base.tolerance, arm.tolerance).different

    def peak_bytes(self, variant: Variant) -> int | None:
        """The middle of three processes."""
        found = [self.runner.peak_bytes(self.arm(variant)) for _ in range(_WEIGHED)]
        known = sorted(peak for peak in found if peak is not None)
        return known[len(known) // 2] if known else None

    def renew(self) -> None:
        """After a session that broke, no process is trusted."""
        if self._runner is not None:
            self._runner.close()

    def device_fails(self) -> str | None:
        """Why the device does not even run a known-good model."""
        return target_fails(self.job.target)

    def unit(self, number: int, variant: Variant | None, *, base_first: bool, fresh: bool) -> UnitRecord:
        """Raises ArmFailed. None is the baseline against itself; `fresh` takes the variant that was made anew."""
        base = self.arm(Variant())
        other = base if variant is None else self._rival(variant) if fresh else self.arm(variant)
        return self.runner.unit(number, base, other, base_first=base_first)

    def arm(self, variant: Variant) -> ReadyArm:
        if variant.label not in self._arms:
            self._arms[variant.label] = self._ready(variant, self.file(variant))
        return self._arms[variant.label]

    def _rival(self, variant: Variant) -> ReadyArm:
        return self._ready(variant, self.rebuilt(variant))

    def _ready(self, variant: Variant, path: Path) -> ReadyArm:
        arm = written(variant, path, self.job.pinned)
        return measure.ready_arm(arm, self._subject, str(self.job.target), self.job.threads)

    @functools.cached_property
    def _subject(self) -> Subject:
        (found,) = self.made((Variant(),))
        assert isinstance(found, BuildResult)
        recorded = self.job.inputs.recorded or found.components[0].inputs
        return measure.make_subject(self.file(Variant()), replace(self.job.inputs, recorded=recorded))

    @property
    def runner(self) -> measure.UnitRunner:
        """Sessions of several threads spin on after a run, so bursts are as for them whoever takes part."""
        if self._runner is None:
            plan = measure.unit_plan([self.arm(Variant())], self.job.by)
            plan = measure.with_energy(plan, self.job.zones) if self.job.zones else plan
            self._runner = measure.UnitRunner(plan, fresh_processes=False)
        return self._runner

    def _slot(self, variant: Variant) -> int:
        return 1 if variant.changes else 0


def written(variant: Variant, path: Path | str, pinned: tuple[AxisChange, ...] = ()) -> Arm:
    """The variant as an arm of a comparison."""
    session = session_of((*pinned, *variant.changes))
    return Arm(
        str(path),
        variant.label,
        threads=session.threads,
        level=session.level,
        options=dict(session.options),
        config=dict(session.config),
    )


def _mark(recipe: Recipe) -> str:
    return digest(recipe)


@functools.lru_cache(256)
def _fingerprint(path: Path) -> str:
    return fingerprint(load(path))


def _opset(path: Path) -> int:
    return next((item.version for item in summary(load(path)).opsets if item.domain in ("", "ai.onnx")), 0)


def _float_model(component: Built) -> ModelInput:
    """What the passes work on, after those of the baseline; a model without such a stage is as it came."""
    found = [stage.model for stage in component.stages if stage.stage == OPTIMIZE.name]
    return found[0] if found else component.final
