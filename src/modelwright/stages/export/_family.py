"""What the models of one type need beyond the general rules: one file here, or an entry point of another package."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._extensions import FAMILIES, broken_extension, extensions, load_extension

if TYPE_CHECKING:
    from modelwright.stages.export._load import Loaded
    from modelwright.stages.export._part import Part, Tensors
    from modelwright.stages.export._values import ExportParams, Link

    Parts = tuple[tuple[Part, ...], tuple[Link, ...]]

_OURS = "modelwright.stages.export.families"


@dataclass(frozen=True, eq=False)
class ModelFamily:
    """All of it is optional, and nothing of it is asked of other types.

    - `classes`: for a task, the class of transformers, where its own tables have none
    - `answers`: the outputs of the graph, by name, from what the model returns
    - `parts`: the graphs it becomes and how they feed each other, where tracing it as it stands does not do
    """

    classes: Mapping[str, str] = field(default_factory=dict)
    answers: Callable[[Any], Tensors] | None = None
    parts: Callable[[Loaded, ExportParams], Parts] | None = None


def family(model_type: str) -> ModelFamily:
    """Ours come first: another package cannot change how a type is exported that is known already."""
    name = "".join(letter for letter in model_type.lower() if letter.isalnum())
    if importlib.util.find_spec(f"{_OURS}.{name}") is not None:
        ours: ModelFamily = importlib.import_module(f"{_OURS}.{name}").FAMILY
        if name in extensions(FAMILIES):
            raise broken_extension(extensions(FAMILIES)[name], f"{model_type} is known already")
        return ours
    return load_extension(FAMILIES, name, ModelFamily) if name in extensions(FAMILIES) else ModelFamily()
