"""What a build would say about a Hugging Face model before it loads a weight, said when its recipe is written."""

from __future__ import annotations

import dataclasses
import importlib.util

from modelwright.models import HfSource, OnnxSource, fetch
from modelwright.pipeline._recipe import Recipe
from modelwright.stages import export as exporting
from modelwright.worker import run

_LIMIT_S = 600.0


def rehearse(source: OnnxSource | HfSource, recipe: Recipe) -> None:
    """Raises where the export could not even begin. Without transformers nobody can be asked; nothing is refused."""
    if recipe.export is None or not isinstance(source, HfSource) or not importlib.util.find_spec("transformers"):
        return
    # Weights are not looked at, so those of a model on the Hub are not downloaded either.
    here = fetch(dataclasses.replace(source, random_weights=True))
    run(exporting.rehearse_export.call(here, recipe.export), timeout=_LIMIT_S).unwrap()
