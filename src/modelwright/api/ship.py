"""`modelwright.ship`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from modelwright import pipeline
from modelwright.answers.ship import (
    HERE,
    PACKAGE,
    SELECTION,
    PackageDraft,
    PackageQuestion,
    ShippedVariant,
    ShipResult,
    SpeedAnswer,
    VariantTrial,
    cpu_variant,
    read_waivers,
)
from modelwright.answers.ship import ship as answered
from modelwright.api._kept import kept, verb
from modelwright.api._opened import opened
from modelwright.api.build import AnyRecipe, Targets, build, buildable
from modelwright.api.compare import compare
from modelwright.errors import WrightError
from modelwright.judge import Allowance
from modelwright.measure import Arm, what_settles
from modelwright.models import Source, SourceChoices
from modelwright.store import Store
from modelwright.vocabulary import Data, On, OnProgress, Progress, as_data, silent


@verb
def ship(
    model: str | Path | Source,
    targets: Targets,
    *,
    output: str | Path,
    recipe: AnyRecipe | None = None,
    precision: str | None = None,
    data: Data | str | None = None,
    samples: int | None = None,
    seed: int | None = None,
    dims: Mapping[str, int] | None = None,
    max_drop: str | float | Allowance | None = None,
    task: str | None = None,
    revision: str | None = None,
    random_weights: bool = False,
    trust_remote_code: bool = False,
    licence: str | None = None,
    waivers: str | Path | None = None,
    runtimes: Sequence[str] = (),
    budget_s: float = 60.0,
    speed_on: str | On | None = None,
    overwrite: bool = False,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> ShipResult:
    """A package for machines that nobody here owns: a variant for each target, selectors, and six gates.

    Each variant is built as `build` would, opened and run here and in each of `runtimes`, and compared with the CPU
    variant. `budget_s` is for each comparison of speed with that; with `speed_on` both are timed on that worker of a
    cluster, which has the devices. `waivers` is a file that says which gates need not
    hold, why, and until which day. The package is written also when a gate says no: it is marked (`passed`).
    """
    tell = on_progress or silent
    excused = () if waivers is None else read_waivers(Path(waivers))
    source = buildable(model, SourceChoices(task, revision, trust_remote_code, random_weights))
    with opened(store) as place:
        pipeline.check_folder(source, Path(output), store=place, overwrite=overwrite)
        place.check_destination(Path(output), (PACKAGE, SELECTION), overwrite=overwrite)
        built = build(
            source,
            targets,
            recipe=recipe,
            precision=precision,
            data=data,
            samples=samples,
            seed=seed,
            dims=dims,
            max_drop=max_drop,
            task=task,
            store=place,
            on_progress=on_progress,
        )
        asked = PackageQuestion(
            model=built[0].source,
            builds=built.builds,
            failed=built.failed,
            output=Path(output),
            data=as_data(data),
            runtimes=tuple(runtimes),
            licence=licence,
            waivers=excused,
            overwrite=overwrite,
        )
        result = answered(asked, _Racing(budget_s, speed_on, place, tell), place, tell)
    return kept(result, refs=() if built.record_id is None else (built.record_id,))


class _Racing:
    """Each variant against the CPU variant, where somebody has its device: a worker that was named, or this machine."""

    def __init__(self, budget_s: float, on: str | On | None, store: Store, tell: OnProgress) -> None:
        self._budget_s, self._on, self._store, self._tell = budget_s, on, store, tell

    def __call__(self, draft: PackageDraft, trials: Sequence[VariantTrial]) -> dict[str, SpeedAnswer]:
        base = cpu_variant(draft.variants)
        others = [one for one in draft.variants if base is None or one.target != base.target]
        return {one.target: self._answer(draft, base, one, trials) for one in others}

    def _answer(
        self, draft: PackageDraft, base: ShippedVariant | None, one: ShippedVariant, trials: Sequence[VariantTrial]
    ) -> SpeedAnswer:
        ran = [trial for trial in trials if trial.target == one.target and trial.ran]
        timed = [trial for trial in ran if not trial.simulated]
        if base is None:
            return SpeedAnswer(None, "not run: there is no CPU variant to be faster than")
        if self._on is not None:
            self._tell(Progress(f"timing {one.target} beside {base.target} on another machine"))
            return self._raced(draft, base, one, HERE)
        if not timed:
            what = "only a simulator was here, and its times mean nothing" if ran else "nobody here has its device"
            return SpeedAnswer(None, f"not run: {what}")
        self._tell(Progress(f"timing {one.target} beside {base.target}"))
        return self._raced(draft, base, one, timed[0].place)

    def _raced(self, draft: PackageDraft, base: ShippedVariant, one: ShippedVariant, place: str) -> SpeedAnswer:
        runtime = None if place == HERE else place
        arms = [
            Arm(str(draft.folder / base.models[0].path), "cpu", target=base.target),
            Arm(str(draft.folder / one.models[0].path), "variant", target=one.target, runtime=runtime),
        ]
        try:
            found = compare(
                arms, budget_s=self._budget_s, allow_different=True, operators=False, on=self._on,
                store=self._store, on_progress=self._tell,
            )  # fmt: skip
        except WrightError as error:
            return SpeedAnswer(None, f"not run: {error.problem}: {error.cause}")
        arm = found.arms[1]
        word = arm.verdict.kind.value if arm.verdict is not None else None
        passed = {"improved": True, "equivalent": True, "regressed": False}.get(str(word))
        fix = what_settles(arm, found) if passed is None and arm.failure is None else None
        return SpeedAnswer(passed, arm.failure or arm.sentence, found.record_id, fix)
