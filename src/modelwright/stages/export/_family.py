"""What the models of one type need beyond the general rules: one file here, or an entry point of another package."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._extensions import FAMILIES, broken_extension, extensions, load_extension
from modelwright.errors import InputError
from modelwright.worker import load_file, user_code

if TYPE_CHECKING:
    from modelwright.stages.export._load import Loaded
    from modelwright.stages.export._part import Part, Tensors
    from modelwright.stages.export._values import ExportParams, Link

    Parts = tuple[tuple[Part, ...], tuple[Link, ...]]

_OURS = "modelwright.stages.export.families"
GENERAL = "none"
"""The word for the general rules alone, in place of a file."""
FILE_MODULE = "modelwright_family_file"
"""What a file of the user's is called among the modules."""
_REPAIR = "Repair it; docs/adding-a-model.md says what it holds."
_said: ContextVar[str | None] = ContextVar("family", default=None)


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


@contextlib.contextmanager
def said_family(said: str | None) -> Iterator[None]:
    """For this export: a file, or the general rules alone; None is what is known."""
    before = _said.set(said)
    try:
        yield
    finally:
        _said.reset(before)


def family_place(model_type: str) -> Path | None:
    """The file of the family that is known for a type, ours or another package's; None where there is none. Nothing
    of it is imported."""
    name = _spelt(model_type)
    found = importlib.util.find_spec(f"{_OURS}.{name}")
    if found is not None and found.origin is not None:
        return Path(found.origin)
    entry = extensions(FAMILIES).get(name)
    if entry is None or entry.dist is None:
        return None
    place = entry.module.replace(".", "/")
    files = (Path(str(entry.dist.locate_file(file))) for file in (f"{place}.py", f"{place}/__init__.py"))
    return next((file for file in files if file.is_file()), None)


def family(model_type: str) -> ModelFamily:
    """What was said for this export. Ours come before those of other packages, which cannot change how a type is
    exported that is known already."""
    said = _said.get()
    if said is not None:
        return ModelFamily() if said == GENERAL else _from_file(Path(said))
    name = _spelt(model_type)
    if importlib.util.find_spec(f"{_OURS}.{name}") is not None:
        ours: ModelFamily = importlib.import_module(f"{_OURS}.{name}").FAMILY
        if name in extensions(FAMILIES):
            raise broken_extension(extensions(FAMILIES)[name], f"{model_type} is known already")
        return ours
    return load_extension(FAMILIES, name, ModelFamily) if name in extensions(FAMILIES) else ModelFamily()


def _spelt(model_type: str) -> str:
    return "".join(letter for letter in model_type.lower() if letter.isalnum())


def _from_file(path: Path) -> ModelFamily:
    if FILE_MODULE not in sys.modules:
        with user_code(f"the family file {path.name}", _REPAIR):
            load_file(path, FILE_MODULE)
    found = getattr(sys.modules[FILE_MODULE], "FAMILY", None)
    if not isinstance(found, ModelFamily):
        raise InputError(f"{path.name} holds no family", cause="it has no FAMILY that is a ModelFamily", fix=_REPAIR)
    return found
