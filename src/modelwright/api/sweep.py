"""`modelwright.sweep`."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from modelwright import pipeline, search
from modelwright._dataclass import dataclass
from modelwright.api._kept import kept, verb
from modelwright.api._opened import opened
from modelwright.api.build import AnyRecipe
from modelwright.api.read import read
from modelwright.api.tune import TuneSubject, TuneWish, searched
from modelwright.errors import UsageError, WrightError
from modelwright.judge import Allowance
from modelwright.models import Source
from modelwright.pipeline import BuildResult, RecipeChoices
from modelwright.search import (
    Objective,
    Portfolio,
    SweepInterrupted,
    SweepRow,
    TuneInterrupted,
    TuneLimits,
    TuneResult,
    TuneSweep,
)
from modelwright.store import Store
from modelwright.targets import Target, parse_target, parse_targets
from modelwright.vocabulary import Data, OnProgress, Progress, silent


@verb
def sweep(
    models: Iterable[str | Path | Source],
    targets: Sequence[str | Target] = ("cpu",),
    *,
    recipe: AnyRecipe | None = None,
    precision: str | None = None,
    data: Data | str | None = None,
    task: str | None = None,
    max_drop: str | float | Allowance | None = None,
    axes: Sequence[str] = (),
    forbid: Sequence[str] = (),
    only: Sequence[str] = (),
    add: Sequence[str] = (),
    objective: Objective = "latency",
    max_memory: int | None = None,
    max_latency_ms: float | None = None,
    budget_s: float = 600.0,
    min_effect: float = 0.02,
    alpha: float = 0.05,
    by: Sequence[float] = (0.1, 0.5),
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    threads: int | None = None,
    again: bool = False,
    wait: bool = True,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> TuneSweep:
    """`tune` of every model for every target, each within `budget_s`; what was answered before is not run again.

    With several targets it also says for each model what to take for all of them: one recipe by its worst case, one
    each, or a front; where each champion can be carried, and what runs when an EP is missing. One that fails does not
    stop the others. Raises SweepInterrupted, with what was found as `partial`.
    """
    limits = TuneLimits(budget_s, min_effect, alpha, tuple(by), objective, max_memory, max_latency_ms)
    wish = TuneWish(
        limits, recipe, precision, data, task, max_drop, axes, forbid, only, add, batch, dims, threads, again, wait
    )
    asked = [SweepModel(_name(model), model, wish) for model in models]
    return _Sweep(asked, _targets(targets), store, on_progress or silent).run()


@dataclass(frozen=True)
class SweepModel:
    """One model of a sweep, and what is asked about it."""

    name: str
    model: str | Path | Source
    wish: TuneWish


class _Sweep:
    def __init__(
        self, models: Sequence[SweepModel], targets: Sequence[Target], store: Store | None, tell: OnProgress
    ) -> None:
        self.models, self.targets, self.store, self.tell = models, targets, store, tell
        self.rows: list[SweepRow] = []
        self.portfolios: list[Portfolio] = []
        self.began = time.monotonic()

    def run(self) -> TuneSweep:
        try:
            for model in self.models:
                self._one(model)
        except TuneInterrupted as early:
            stop = SweepInterrupted()
            stop.partial = kept(self._answer())
            raise stop from early
        return kept(self._answer())

    def _answer(self) -> TuneSweep:
        return TuneSweep(tuple(self.rows), tuple(self.portfolios), time.monotonic() - self.began)

    def _one(self, model: SweepModel) -> None:
        found = [self._cell(model, target) for target in self.targets]
        self.rows += found
        results = [row.result for row in found if row.result is not None]
        if len(self.targets) > 1 and len(results) == len(self.targets):
            self.portfolios.append(self._portfolio(model, results))

    def _cell(self, model: SweepModel, target: Target) -> SweepRow:
        self.tell(Progress(f"{model.name} for {target}"))
        try:
            about = model.wish.about(model.model, target)
            before = None if model.wish.again else self._before(about)
            result = before or self._noted(about, searched(about, self.store, self.tell))
        except WrightError as error:
            return SweepRow(model.name, str(target), None, f"{error.problem}: {error.cause}", fresh=True)
        return SweepRow(model.name, str(target), result, None, fresh=before is None)

    def _before(self, about: TuneSubject) -> TuneResult | None:
        """What was answered to the same question, where the budget did not end it."""
        with opened(self.store) as place:
            file = about.answer_file(place)
            try:
                found = read(file.read_text(encoding="ascii"), store=place).payload
            except (OSError, ValueError, WrightError):
                return None
        return found if isinstance(found, TuneResult) else None

    def _noted(self, about: TuneSubject, result: TuneResult) -> TuneResult:
        if result.record_id is not None and result.status == "complete" and result.needed_s is None:
            with opened(self.store) as place:
                file = about.answer_file(place)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(result.record_id, encoding="ascii")
        return result

    def _portfolio(self, model: SweepModel, results: Sequence[TuneResult]) -> Portfolio:
        self.tell(Progress(f"{model.name}: what runs when an EP is missing"))
        found = search.portfolio(results)
        with opened(self.store) as place:
            builds = [self._build(model, result, place) for result in results]
            inputs = model.wish.about(model.model, results[0].target).options.inputs
            return found.with_chain(search.fallback_chain(builds, inputs, place))

    def _build(self, model: SweepModel, result: TuneResult, store: Store) -> BuildResult:
        source = model.wish.about(model.model, result.target).source
        layer = tomllib.loads(result.recipe)
        recipe = pipeline.resolve_recipe(source, parse_target(result.target), RecipeChoices(), layer)
        return pipeline.build(source, recipe, store=store, on_progress=self.tell, force=True)


def _targets(targets: Sequence[str | Target]) -> tuple[Target, ...]:
    found = parse_targets([str(target) for target in targets])
    if len(set(found)) != len(found) or not found:
        raise UsageError("each target is named once", cause="the same one is there twice, or none", fix="say each once")
    return found


def _name(model: str | Path | Source) -> str:
    return Path(model).stem if isinstance(model, str | Path) else str(getattr(model, "name", "model"))
