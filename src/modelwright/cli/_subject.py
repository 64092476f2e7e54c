"""From what a user names to the one .onnx file that is measured: built first where it is a Hugging Face model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.cli._options import Output
from modelwright.errors import UsageError

if TYPE_CHECKING:
    from modelwright import models, targets
    from modelwright import pipeline as building
    from modelwright import store as stores
    from modelwright.report import status
    from modelwright.vocabulary import InputSpec
else:
    building = lazy("modelwright.pipeline")
    models = lazy("modelwright.models")
    stores = lazy("modelwright.store")
    targets = lazy("modelwright.targets")
    status = lazy("modelwright.report.status")

_MODEL = "model.onnx"


@dataclass(frozen=True)
class ModelFile:
    """The file to measure. `built_from` is what the user named, where the file is only a blob in the store, and then
    `inputs` is what its export recorded."""

    path: str
    built_from: str | None = None
    inputs: InputSpec | None = None


def model_file(text: str, target: str, component: str | None, out: Output) -> ModelFile:
    """A file or build folder as it is, one component of a larger build, or a Hugging Face model built for `target`."""
    path = Path(text).expanduser()
    if path.is_dir() and (path / models.MANIFEST).is_file():
        build = models.read_build(path)
        names = [part.name for part in build.parts]
        if len(names) > 1:
            return ModelFile(str(build.model(_chosen(names, component, text))))
    if component is not None and (path.is_file() or (path / _MODEL).is_file()):
        raise UsageError(f"{path.name} has no components", cause="it is one model", fix="leave --component out")
    if path.is_file() or (path / _MODEL).is_file() or not _is_hugging_face(path):
        return ModelFile(text)
    return _built(text, target, component, out)


def _is_hugging_face(path: Path) -> bool:
    """A folder with a configuration, or something that is no path at all: a model id."""
    return (path / "config.json").is_file() or (not path.exists() and path.suffix != ".onnx")


def _built(text: str, target: str, component: str | None, out: Output) -> ModelFile:
    source = models.resolve(text)
    assert isinstance(source, models.HfSource), "files and build folders are measured as they are"
    recipe = building.resolve_recipe(source, targets.parse_target(target))
    with stores.Store() as store, status.StatusLine(out.console(sys.stderr), quiet=out.quiet or out.json) as line:
        result = building.build(source, recipe, store=store, on_progress=line)
    parts = {part.name: part for part in result.components}
    part = parts[_chosen(list(parts), component, text) if len(parts) > 1 else next(iter(parts))]
    final = part.final
    out.note(f"built {text} for {result.target} at {recipe.precision}")
    prefix = f"{final.folder}/" if final.folder else ""
    shown = f"{text} {final.folder}" if len(parts) > 1 else text
    return ModelFile(str(final.artifact.path_of(f"{prefix}{_MODEL}")), shown, part.inputs)


def _chosen(names: Sequence[str], component: str | None, text: str) -> str:
    if component in names:
        return str(component)
    raise UsageError(
        f"{text} has several components" if component is None else f"{text} has no component '{component}'",
        cause=f"they are {', '.join(names)}",
        fix=f"add --component {names[0]}",
    )
