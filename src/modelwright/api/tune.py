"""`modelwright.tune`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from modelwright import pipeline, search
from modelwright._call import spoken
from modelwright._dataclass import dataclass
from modelwright.api._accuracy import refuse_unlabelled
from modelwright.api._inputs import input_choice
from modelwright.api._kept import kept, verb
from modelwright.api._opened import opened
from modelwright.api.build import AnyRecipe, buildable, read_recipe
from modelwright.data import drawing
from modelwright.errors import WrightError
from modelwright.judge import Allowance, as_allowance
from modelwright.knowledge import KnowledgeBase, learn
from modelwright.models import HfSource, OnnxSource, Source, SourceChoices
from modelwright.pipeline import Layer, RecipeChoices
from modelwright.search import DeviceLostError, Objective, TuneInterrupted, TuneLimits, TuneOptions, TuneResult
from modelwright.store import Store
from modelwright.targets import Target, parse_target
from modelwright.vocabulary import Data, On, OnProgress, as_data


@dataclass(frozen=True)
class TuneSubject:
    """One model for one target, with everything that a search is asked."""

    source: OnnxSource | HfSource
    target: Target
    choices: RecipeChoices
    options: TuneOptions
    layer: Layer

    def answer_file(self, store: Store) -> Path:
        return search.answer_file(self.source, self.target, self.choices, self.options, layer=self.layer, store=store)


@dataclass(frozen=True)
class TuneWish:
    """What is asked of every search of a call."""

    limits: TuneLimits
    recipe: AnyRecipe | None
    precision: str | None
    data: Data | str | None
    samples: int | None
    seed: int | None
    task: str | None
    max_drop: str | float | Allowance | None
    axes: Sequence[str]
    forbid: Sequence[str]
    only: Sequence[str]
    add: Sequence[str]
    batch: int | None
    dims: Mapping[str, int] | None
    threads: int | None
    again: bool
    wait: bool

    def about(
        self, model: str | Path | Source, target: str | Target | None, said: SourceChoices | None = None
    ) -> TuneSubject:
        """Asked about one model for one target."""
        source = buildable(model, said or SourceChoices(self.task))
        layer = read_recipe(self.recipe, source)
        wanted = parse_target(target or str(layer.get("target", "cpu")))
        choices = self._choices()
        recipe = pipeline.resolve_recipe(source, wanted, choices, layer)
        options = TuneOptions(
            limits=self.limits,
            axes=tuple(self.axes),
            forbid=tuple(self.forbid),
            only=tuple(self.only),
            add=tuple(self.add),
            inputs=input_choice(recipe.data, self.batch, self.dims),
            threads=self.threads,
            max_drop=as_allowance(self.max_drop),
            task=self.task or source.task,
            wait=self.wait,
            again=self.again,
        )
        if options.max_drop is not None:
            refuse_unlabelled([recipe], options.task)
        return TuneSubject(source, wanted, choices, options, layer)

    def _choices(self) -> RecipeChoices:
        """Nothing said about data is not the same as made-up data: a recipe may name some."""
        return RecipeChoices(
            precision=self.precision,
            data=None if self.data is None else as_data(self.data),
            samples=self.samples,
            seed=self.seed,
            dims=tuple((self.dims or {}).items()),
        )


@verb
def tune(
    model: str | Path | Source,
    target: str | Target | None = None,
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
    on: str | On | None = None,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> TuneResult:
    """The configuration that is really best on this target, proven on a fresh build; the baseline where none is.

    The baseline is what `build` makes, from a `recipe` too, whose data is used where `data` names none. `axes` are what
    may be done otherwise, `forbid` what may not (an axis or one change), `only` the changes to try, `add` options of
    the EP (`opt.KEY=VALUE`) and entries of the session (`config.KEY=VALUE`) that no axis has. `objective` is what is
    made small (energy: the CPU's, where the system tells); `max_memory` (bytes, of a process that opens and runs it) is
    what a variant may take, `max_latency_ms` what a run of the champion may, by the slowest quantile of `by`. Another
    precision takes part only with real data, and with `max_drop` only where it is proven to lose no more of the metric
    of `task` on labelled data. `output` gets the champion. With `on` the search is done on that worker of a cluster.
    What was measured is kept as it happens: the same call goes on after a kill, `again` starts anew. Raises
    TuneInterrupted, with where it stood as `partial`, when it ends early.
    """
    limits = TuneLimits(budget_s, min_effect, alpha, tuple(by), objective, max_memory, max_latency_ms)
    sampled = (data, samples, seed, task, max_drop)
    changes = (axes, forbid, only, add)
    wish = TuneWish(limits, recipe, precision, *sampled, *changes, batch, dims, threads, again, wait)
    return searched(wish.about(model, target), store, on_progress, output=output, overwrite=overwrite)


def searched(
    about: TuneSubject,
    store: Store | None,
    on_progress: OnProgress | None,
    *,
    output: str | Path | None = None,
    overwrite: bool = False,
) -> TuneResult:
    """The search done, its answer kept and what it proved drafted."""
    folder, source, options = None if output is None else Path(output), about.source, about.options
    with opened(store) as place, drawing(place.root.parent):
        pipeline.check_folder(source, folder, store=place, overwrite=overwrite)
        given = (source, about.target, about.choices, options)
        try:
            result, build = search.tune(*given, layer=about.layer, store=place, on_progress=on_progress)
        except (TuneInterrupted, DeviceLostError) as early:
            early.partial = kept(replace(early.partial, call=spoken.get()))
            raise
        result = replace(result, call=spoken.get())
        if folder is not None:
            pipeline.deliver(build, folder, store=place, overwrite=overwrite)
            result = replace(result, folder=str(folder))
    return _drafted(kept(result), store)


def _drafted(result: TuneResult, store: Store | None) -> TuneResult:
    """What it proved becomes drafts of findings. What keeps them from being kept is said; it never costs the answer."""
    if result.record_id is None:
        return result
    try:
        with opened(store) as place:
            learn(KnowledgeBase(place), result.record_id)
    except (WrightError, OSError) as error:
        logging.getLogger(__name__).warning("what was found is not in the knowledge base: %s", error)
    return result
