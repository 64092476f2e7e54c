"""`modelwright.tune`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from modelwright import pipeline, search
from modelwright.api._accuracy import refuse_unlabelled
from modelwright.api._inputs import data_for, input_choice
from modelwright.api._kept import kept, verb
from modelwright.api._opened import opened
from modelwright.api.build import AnyRecipe, buildable, read_recipe
from modelwright.data import drawing
from modelwright.errors import WrightError
from modelwright.judge import Allowance, as_allowance
from modelwright.knowledge import KnowledgeBase, learn
from modelwright.models import Source, SourceChoices
from modelwright.pipeline import RecipeChoices
from modelwright.search import DeviceLostError, Objective, TuneInterrupted, TuneLimits, TuneOptions, TuneResult
from modelwright.store import Store
from modelwright.targets import Target, parse_target
from modelwright.vocabulary import Data, OnProgress, as_data


@verb
def tune(
    model: str | Path | Source,
    target: str | Target | None = None,
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
    output: str | Path | None = None,
    overwrite: bool = False,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> TuneResult:
    """The configuration that is really best on this target, proven on a fresh build; the baseline where none is.

    The baseline is what `build` makes, from a `recipe` too. `axes` are what may be done otherwise, `forbid` what may
    not (an axis or one change), `only` the changes to try, `add` options of the EP (`opt.KEY=VALUE`) and entries of the
    session (`config.KEY=VALUE`) that no axis has. `objective` is what is made small; `max_memory` (bytes, of a process
    that opens and runs it) is what a variant may take, `max_latency_ms` what a run of the champion may, by the slowest
    quantile of `by`. Another precision takes part only with real `data`, and with
    `max_drop` only where it is proven to lose no more of the metric of `task` on labelled data. `output` gets the
    champion. What was measured is kept as it happens: the same call goes on after a kill, `again` starts anew. Raises
    TuneInterrupted, with where it stood as `partial`, when it ends early.
    """
    source = buildable(model, SourceChoices(task))
    layer = read_recipe(recipe)
    limits = TuneLimits(budget_s, min_effect, alpha, tuple(by), objective, max_memory, max_latency_ms)
    options = TuneOptions(
        limits=limits,
        axes=tuple(axes),
        forbid=tuple(forbid),
        only=tuple(only),
        add=tuple(add),
        inputs=input_choice(data_for(data, source), batch, dims),
        threads=threads,
        max_drop=as_allowance(max_drop),
        task=task or source.task,
        wait=wait,
        again=again,
    )
    choices = RecipeChoices(
        precision=precision, data=None if data is None else as_data(data), dims=tuple((dims or {}).items())
    )
    wanted = parse_target(target or str(layer.get("target", "cpu")))
    if options.max_drop is not None:
        refuse_unlabelled([pipeline.resolve_recipe(source, wanted, choices, layer)], options.task)
    folder = None if output is None else Path(output)
    with opened(store) as place, drawing(place.root.parent):
        pipeline.check_folder(source, folder, store=place, overwrite=overwrite)
        try:
            result, build = search.tune(
                source, wanted, choices, options, layer=layer, store=place, on_progress=on_progress
            )
        except (TuneInterrupted, DeviceLostError) as early:
            early.partial = kept(early.partial)
            raise
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
