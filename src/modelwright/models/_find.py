"""From a path to the one .onnx file behind it."""

from __future__ import annotations

import re
from pathlib import Path

from modelwright.errors import InputError, UsageError
from modelwright.models._build_folder import MANIFEST, read_build

MODEL = "model.onnx"
_HUB_ID = re.compile(r"(?!.*\.onnx$)[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def find_model(text: str | Path) -> Path:
    """The file itself, or the one in a build folder, which is checked: it must be what was built."""
    path = Path(text).expanduser().absolute()
    if path.is_file():
        return path
    if (path / MANIFEST).is_file():
        return read_build(path).model()
    if path.is_dir() and (path.parent / MANIFEST).is_file():
        build = read_build(path.parent)
        if path.name in {part.folder for part in build.parts}:
            return build.model(next(part.name for part in build.parts if part.folder == path.name))
    if (path / MODEL).is_file():
        return path / MODEL
    raise _none(path, str(text))


def _none(path: Path, text: str) -> InputError | UsageError:
    models = sorted(item.name for item in path.glob("*.onnx")) if path.is_dir() else []
    if models:
        return UsageError(
            f"{path.name} holds several models",
            cause=f"it has no {MODEL}, but {', '.join(models)}",
            fix=f"point at one of them, for example {path / models[0]}",
        )
    if not path.is_dir() and not _HUB_ID.fullmatch(text):
        return InputError(f"{path} does not exist", cause="no such file or folder", fix="check the path")
    return UsageError(
        f"{text} is not a model that can be measured yet",
        cause="only .onnx files and build folders are measured",
        fix=f"build it first: wright build -m {text} -o build, then give the folder build",
    )
