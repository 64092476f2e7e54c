"""What a search is asked for, with what the recipe says about searching; what can be wrong without a model is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from modelwright.models import HfSource, OnnxSource
from modelwright.pipeline import Layer, RecipeChoices, TuneTable, resolve_recipe
from modelwright.search._key import question_key, search_folder
from modelwright.search._space import pinned, refuse_unknown
from modelwright.search._types import TuneOptions
from modelwright.search._workshop import Job
from modelwright.store import Store
from modelwright.targets import Target


def asked(
    source: OnnxSource | HfSource, target: Target, choices: RecipeChoices, options: TuneOptions, layer: Layer
) -> tuple[Job, TuneOptions]:
    """What is tuned, and how."""
    recipe = resolve_recipe(source, target, choices, layer)
    options = _with_table(options, recipe.tune or TuneTable())
    refuse_unknown(options.axes, options.forbid, options.only, options.add)
    pins = pinned(recipe.tune.pin if recipe.tune is not None else ())
    job = Job(source, target, recipe, choices, layer, options.inputs, options.threads, options.limits.by, pins)
    return job, options


def answer_file(
    source: OnnxSource | HfSource,
    target: Target,
    choices: RecipeChoices,
    options: TuneOptions,
    *,
    layer: Layer,
    store: Store,
) -> Path:
    """Where the record of the answer to this very question is noted."""
    job, options = asked(source, target, choices, options, layer)
    return search_folder(store) / f"{question_key(job, options)}.answer"


def _with_table(options: TuneOptions, table: TuneTable) -> TuneOptions:
    """What was said to the search, and what the recipe says about searching."""
    held = [word.partition("=")[0] for word in table.pin]
    return replace(
        options,
        axes=options.axes or table.axes,
        forbid=(*options.forbid, *table.forbid, *held),
        add=tuple(dict.fromkeys((*table.add, *options.add))),
    )
