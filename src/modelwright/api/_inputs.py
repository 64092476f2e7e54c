"""The data that perf, compare, eval and debug feed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.api._model import source_of
from modelwright.models import HfSource
from modelwright.vocabulary import Data, InputSpec, as_data

if TYPE_CHECKING:
    from modelwright import measure
    from modelwright.api._model import Model
    from modelwright.measure import InputChoice
else:
    # It is half of what eval and debug would import.
    measure = lazy("modelwright.measure")


def data_for(data: Data | str | None, *models: Model) -> Data:
    """What was said; a Hugging Face model among those that are fed brings its own processor."""
    said = as_data(data)
    if said.random or said.processor is not None:
        return said
    sources = (source_of(model) for model in models)
    folders = (source.folder for source in sources if isinstance(source, HfSource))
    return replace(said, processor=next((folder for folder in folders if folder is not None), None))


def input_choice(
    data: Data, batch: int | None, dims: Mapping[str, int] | None, recorded: InputSpec | None = None
) -> InputChoice:
    return measure.InputChoice(data, batch, dict(dims or {}), recorded)
