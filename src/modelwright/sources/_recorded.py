"""What an export recorded about a model's inputs, read from the manifest of the build that the model belongs to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.sources._spec import InputSpec, TensorSpec

if TYPE_CHECKING:
    import pydantic
else:
    pydantic = lazy("pydantic")

MANIFEST = "wright.json"


def recorded_inputs(model: Path) -> InputSpec:
    """Empty when the model belongs to no build, or to one that started from an .onnx file and knows no more."""
    for folder, place in ((model.parent, ""), (model.parent.parent, model.parent.name)):
        if (folder / MANIFEST).is_file():
            return _inputs(folder / MANIFEST, place, model.name)
    return ()


def _inputs(manifest: Path, place: str, name: str) -> InputSpec:
    try:
        for component in json.loads(manifest.read_bytes())["components"]:
            if component["folder"] == place and name in (file["name"] for file in component["files"]):
                return _typed(component["inputs"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{manifest.parent.name} cannot be read as a build",
            cause=f"{MANIFEST}: {type(error).__name__} {' '.join(str(error).split())[:160]}".rstrip(),
            fix="Build it again, or take the model out of that folder.",
        ) from error
    return ()


def _typed(inputs: Any) -> InputSpec:
    return tuple(pydantic.TypeAdapter(tuple[TensorSpec, ...]).validate_python(inputs))
