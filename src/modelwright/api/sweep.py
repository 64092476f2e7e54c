"""`modelwright.sweep`."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from modelwright import farm, pipeline, search
from modelwright._dataclass import dataclass
from modelwright.api._kept import kept, verb
from modelwright.api._opened import opened
from modelwright.api.build import AnyRecipe, read_recipe, target_folder
from modelwright.api.read import read
from modelwright.api.tune import TuneSubject, TuneWish, searched
from modelwright.errors import StoreError, UsageError, WrightError
from modelwright.farm import MatrixCell, MatrixRow
from modelwright.judge import Allowance
from modelwright.models import BuildSource, HfSource, OnnxSource, Source, SourceChoices
from modelwright.pipeline import BuildResult, RecipeChoices
from modelwright.search import (
    Objective,
    Portfolio,
    SearchFailure,
    SweepInterrupted,
    SweepRow,
    TuneLimits,
    TuneResult,
    TuneSweep,
)
from modelwright.store import Store
from modelwright.targets import Target, parse_target, parse_targets
from modelwright.vocabulary import Data, OnProgress, Progress, silent

Catalog = str | Path | Iterable[str | Path | Mapping[str, Any] | MatrixRow | Source]


@verb
def sweep(
    models: Catalog,
    targets: Sequence[str | Target] | None = None,
    *,
    recipe: AnyRecipe | None = None,
    precision: str | None = None,
    data: Data | str | None = None,
    samples: int | None = None,
    seed: int | None = None,
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
    output: str | Path | None = None,
    overwrite: bool = False,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> TuneSweep:
    """`tune` of every model for every target, each within `budget_s`; what was answered before is not run again.

    `models` is a list file, as `matrix` takes it, or its rows: what a row says about its task, precision and data goes
    before what is said here. With several targets it also says for each model what to take for all of them: one recipe
    by its worst case, one each, or a front; where each champion can be carried, and what runs when an EP is missing.
    `output` gets the champions: a folder for each target, of several models in a folder for each model. One that fails
    does not stop the others. Raises SweepInterrupted, with what was found as `partial`.
    """
    limits = TuneLimits(budget_s, min_effect, alpha, tuple(by), objective, max_memory, max_latency_ms)
    sampled = (data, samples, seed, task, max_drop)
    changes = (axes, forbid, only, add)
    wish = TuneWish(limits, recipe, precision, *sampled, *changes, batch, dims, threads, again, wait)
    search.refuse_unknown(axes, forbid, only, add)
    place = None if output is None else SweepFolder(Path(output), isinstance(models, str | Path), overwrite)
    return _Sweep(_asked(models, wish), _targets(targets, wish), place, store, on_progress or silent).run()


@dataclass(frozen=True)
class SweepModel:
    """One model of a sweep, and what is asked about it."""

    name: str
    model: str | Path | Source
    wish: TuneWish
    row: MatrixRow | None = None

    def about(self, target: str | Target) -> TuneSubject:
        row = self.row
        if row is None:
            return self.wish.about(self.model, target)
        precision, _ = farm.precision_for(row, parse_target(target))
        task = row.task or self.wish.task
        own = replace(self.wish, precision=precision or self.wish.precision, data=row.data or self.wish.data, task=task)
        return own.about(row.model, target, SourceChoices(task, row.revision, random_weights=row.random_weights))

    def note(self, target: Target) -> str | None:
        return None if self.row is None else farm.precision_for(self.row, target)[1]


@dataclass(frozen=True)
class SweepFolder:
    """Where champions are written; of a list file, in a folder for each model, as a matrix does it."""

    output: Path
    many: bool
    overwrite: bool

    def of(self, model: SweepModel, target: Target) -> Path:
        if not self.many or model.row is None:
            return target_folder(self.output, str(target))
        return self.output / MatrixCell("", model.row.title, str(target), asked=model.row.precision).slug


class _Sweep:
    def __init__(
        self,
        models: Sequence[SweepModel],
        targets: Sequence[Target],
        place: SweepFolder | None,
        store: Store | None,
        tell: OnProgress,
    ) -> None:
        self.models, self.targets, self.place, self.store, self.tell = models, targets, place, store, tell
        self.rows: list[SweepRow] = []
        self.portfolios: list[Portfolio] = []
        self.began = time.monotonic()

    @property
    def asked(self) -> int:
        return len(self.models) * len(self.targets)

    def run(self) -> TuneSweep:
        self.tell(Progress(f"{self.asked} searches of at most {self.models[0].wish.limits.budget_s:.0f} s each"))
        try:
            for model in self.models:
                self._one(model)
        except KeyboardInterrupt as early:
            stop = SweepInterrupted()
            stop.partial = kept(self._answer())
            raise stop from early
        except StoreError as error:
            # A full disk is the same for all that come after.
            error.partial = kept(self._answer())  # type: ignore[attr-defined]
            raise
        return kept(self._answer())

    def _answer(self) -> TuneSweep:
        return TuneSweep(tuple(self.rows), tuple(self.portfolios), time.monotonic() - self.began, self.asked)

    def _one(self, model: SweepModel) -> None:
        for target in self.targets:
            self.rows.append(self._cell(model, target))
        results = [row.result for row in self.rows[-len(self.targets) :] if row.result is not None]
        if len(self.targets) > 1 and len(results) == len(self.targets):
            self.portfolios.append(self._portfolio(model, results))

    def _cell(self, model: SweepModel, target: Target) -> SweepRow:
        self.tell(Progress(f"{model.name} for {target} ({len(self.rows) + 1} of {self.asked})"))
        try:
            about = model.about(target)
            before = None if model.wish.again else self._before(about)
            result = self._searched(model, about) if before is None else self._written(model, about, before)
        except StoreError:
            raise
        except WrightError as error:
            failure = SearchFailure(error.problem, error.cause, error.fix, error.exit_code)
            return SweepRow(model.name, str(target), None, failure, fresh=True)
        return SweepRow(
            model.name, str(target), result, None, before is None, result.record_id, model.note(about.target)
        )

    def _before(self, about: TuneSubject) -> TuneResult | None:
        """What was answered to the same question."""
        with opened(self.store) as place:
            file = about.answer_file(place)
            try:
                record = read(file.read_text(encoding="ascii"), store=place)
            except (OSError, ValueError, WrightError):
                return None
        if not isinstance(record.payload, TuneResult):
            return None
        object.__setattr__(record.payload, "record_id", record.id)
        return record.payload

    def _searched(self, model: SweepModel, about: TuneSubject) -> TuneResult:
        folder, overwrite = self._folder(model, about), self.place is not None and self.place.overwrite
        result = searched(about, self.store, self.tell, output=folder, overwrite=overwrite)
        if result.record_id is not None and result.status == "complete":
            with opened(self.store) as place:
                file = about.answer_file(place)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(result.record_id, encoding="ascii")
        return result

    def _written(self, model: SweepModel, about: TuneSubject, before: TuneResult) -> TuneResult:
        """An earlier answer, with its champion where it is wanted now."""
        folder = self._folder(model, about)
        if folder is None or self.place is None:
            return before
        with opened(self.store) as place:
            pipeline.check_folder(about.source, folder, store=place, overwrite=self.place.overwrite)
            build = self._build(model, before, place)
            pipeline.deliver(build, folder, store=place, overwrite=self.place.overwrite)
        found = replace(before, folder=str(folder))
        object.__setattr__(found, "record_id", before.record_id)
        return found

    def _folder(self, model: SweepModel, about: TuneSubject) -> Path | None:
        return None if self.place is None else self.place.of(model, about.target)

    def _portfolio(self, model: SweepModel, results: Sequence[TuneResult]) -> Portfolio:
        self.tell(Progress(f"{model.name}: what runs when an EP is missing"))
        found = replace(search.portfolio(results), model=model.name)
        try:
            with opened(self.store) as place:
                builds = [self._build(model, result, place) for result in results]
                inputs = model.about(results[0].target).options.inputs
                return found.with_chain(search.fallback_chain(builds, inputs, place))
        except StoreError:
            raise
        except WrightError as error:
            self.tell(Progress(f"{model.name}: what runs when an EP is missing cannot be told: {error}"))
            return found

    def _build(self, model: SweepModel, result: TuneResult, store: Store) -> BuildResult:
        source = model.about(result.target).source
        layer = tomllib.loads(result.recipe)
        recipe = pipeline.resolve_recipe(source, parse_target(result.target), RecipeChoices(), layer)
        return pipeline.build(source, recipe, store=store, on_progress=self.tell, force=True)


def _asked(models: Catalog, wish: TuneWish) -> tuple[SweepModel, ...]:
    """The models of a list, of a file or given here; a source that somebody has made is asked about as it is."""
    given = [] if isinstance(models, str | Path) else list(models)
    sources = [one for one in given if isinstance(one, OnnxSource | BuildSource | HfSource)]
    rows = [one for one in given if not isinstance(one, OnnxSource | BuildSource | HfSource)]
    made = [SweepModel(str(getattr(one, "name", "model")), one, wish) for one in sources]
    listed = farm.read_rows(models if isinstance(models, str | Path) else rows) if rows or not sources else ()
    return (*(SweepModel(_name(row), row.model, wish, row) for row in listed), *made)


def _name(row: MatrixRow) -> str:
    """Two rows may be about one model."""
    return row.title if row.precision is None else f"{row.title} at {row.precision}"


def _targets(targets: Sequence[str | Target] | None, wish: TuneWish) -> tuple[Target, ...]:
    said = targets if targets is not None else [str(read_recipe(wish.recipe).get("target", "cpu"))]
    found = parse_targets([str(target) for target in said])
    if len(set(found)) != len(found) or not found:
        raise UsageError("each target is named once", cause="the same one is there twice, or none", fix="say each once")
    return found
