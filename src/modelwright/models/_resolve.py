"""From what the user points at to a source, and from a source to its .onnx file: the one place that does either."""

from __future__ import annotations

import re
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright.errors import InputError, UsageError
from modelwright.models._build_folder import MANIFEST, read_build
from modelwright.models._digest import content_digest, folder_digest
from modelwright.models._facts import model_facts
from modelwright.models._hf import CONFIG, HfSource, SourceChoices, local_source
from modelwright.models._hub import hub_source
from modelwright.vocabulary import read_task

MODEL = "model.onnx"
_ITSELF = "*.onnx"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


@dataclass(frozen=True)
class OnnxSource:
    """A single `.onnx` file, with its external data beside it."""

    path: str
    task: str | None = None

    def identity(self) -> str:
        """All files it consists of: external weights and compiled blobs count, its own name does not."""
        path = Path(self.path)
        parts = {name: path.parent / name for name in model_facts(path).parts}
        return f"sha256:{content_digest({_ITSELF: path, **parts})}"


@dataclass(frozen=True)
class BuildSource:
    """A folder that a build wrote, or one component in it. `name` is what it is called, where that is not its place."""

    folder: str
    component: str | None = None
    name: str | None = None

    def identity(self) -> str:
        return f"sha256:{folder_digest(Path(self.folder), (MANIFEST,))}"


Source = OnnxSource | HfSource | BuildSource


def resolve(
    model: str | Path | Source,
    *,
    task: str | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    random_weights: bool = False,
) -> Source:
    """What `model` names: an `.onnx` file, a build folder, a Hugging Face folder, or a model on the Hub."""
    choices = SourceChoices(task, revision, trust_remote_code, random_weights)
    if isinstance(model, OnnxSource | HfSource | BuildSource):
        if choices != SourceChoices():
            raise UsageError("the source is said already", cause="it has its own settings", fix="give its name instead")
        return model
    text, path = str(model), Path(model).expanduser()
    _require_path(path)
    if path.is_dir():
        return _folder(path, choices)
    if path.suffix.lower() == ".onnx" or path.is_file():
        return _file(path, choices)
    if not _HUB_ID.fullmatch(text) or text.count("/") > 1:
        raise InputError(
            f"{text} does not exist", cause="no such file or folder, and it is no model id", fix="Check the path."
        )
    return hub_source(text, choices)


def onnx_of(model: str | Path | Source, component: str | None = None) -> Path:
    """The one `.onnx` file that `model` names; of a build folder, which is checked: it must be what was built."""
    source = resolve(model)
    if isinstance(source, BuildSource):
        return read_build(Path(source.folder)).model(source.component or component)
    if isinstance(source, HfSource):
        raise UsageError(
            f"{source.name} is not a model that can run yet",
            cause="it is a Hugging Face model",
            fix=f"build it first: wright build {source.folder or source.name} -o build, then give the folder build",
        )
    if component is not None:
        raise UsageError(f"{Path(source.path).name} has no components", cause="it is one model", fix="leave it out")
    return Path(source.path)


def _require_path(path: Path) -> None:
    """A name the system does not even look up, for example one that is too long."""
    try:
        path.exists()
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path.name[:60]} cannot be looked up", cause=cause, fix="Check the path.") from error


def _file(path: Path, choices: SourceChoices) -> OnnxSource:
    _refuse_hf_options(path, choices)
    return OnnxSource(str(path.absolute()), read_task(choices.task).head if choices.task else None)


def _folder(path: Path, choices: SourceChoices) -> Source:
    place = path.absolute()
    if (place / MANIFEST).is_file():
        _refuse_hf_options(path, choices)
        return BuildSource(str(place))
    if (place.parent / MANIFEST).is_file():
        parts = {part.folder: part.name for part in read_build(place.parent).parts}
        if place.name in parts:
            _refuse_hf_options(path, choices)
            return BuildSource(str(place.parent), parts[place.name])
    if (path / CONFIG).is_file():
        return local_source(path, choices)
    if (path / MODEL).is_file():
        return _file(path / MODEL, choices)
    raise _no_model(path)


def _no_model(path: Path) -> InputError:
    found = sorted(item.name for item in path.glob("*.onnx"))
    if found:
        return InputError(
            f"{path.name} holds several models",
            cause=f"it has no {MODEL}, but {', '.join(found)}",
            fix=f"point at one of them, for example {path / found[0]}",
        )
    return InputError(
        f"{path.name} is not a model folder",
        cause=f"it has neither {CONFIG} nor {MANIFEST}",
        fix="Point at the folder that holds config.json.",
    )


def _refuse_hf_options(path: Path, choices: SourceChoices) -> None:
    given = [f"`{name}`" for name in ("revision", "trust_remote_code", "random_weights") if getattr(choices, name)]
    if given:
        raise InputError(
            f"{' and '.join(given)} cannot be used with {path.name}",
            cause="it is not a Hugging Face model",
            fix="Leave it out.",
        )
