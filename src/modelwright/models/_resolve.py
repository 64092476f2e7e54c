"""From what the user typed to a source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from modelwright.errors import InputError
from modelwright.graph import load, summary
from modelwright.models._build_folder import MANIFEST
from modelwright.models._digest import content_digest, folder_digest
from modelwright.models._hf import CONFIG, Choices, HfSource, local_source
from modelwright.models._hub import hub_source
from modelwright.models._task import canonical_task

MODEL = "*.onnx"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


@dataclass(frozen=True)
class OnnxSource:
    """A single `.onnx` file, with its external data beside it."""

    path: str
    task: str | None = None

    def identity(self) -> str:
        """All files it consists of: external weights and compiled blobs count, its own name does not."""
        graph = load(self.path)
        parts = {item.name: graph.folder / item.name for item in summary(graph).files if item.role != "model"}
        return f"sha256:{content_digest({MODEL: graph.path, **parts})}"


@dataclass(frozen=True)
class BuildSource:
    """A folder that a build wrote."""

    folder: str

    def identity(self) -> str:
        return f"sha256:{folder_digest(Path(self.folder), (MANIFEST,))}"


Source = OnnxSource | HfSource | BuildSource


def resolve_source(
    text: str,
    *,
    task: str | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    random_weights: bool = False,
) -> Source:
    """What `text` names: an `.onnx` file, a build folder, a Hugging Face folder, or a model on the Hub."""
    choices = Choices(task, revision, trust_remote_code, random_weights)
    path = Path(text).expanduser()
    _require_path(path)
    if path.is_dir():
        return _folder(path, choices)
    if path.suffix.lower() == ".onnx" or path.is_file():
        _refuse_hf_options(path, choices)
        return OnnxSource(str(path.absolute()), canonical_task(task) if task else None)
    if not _HUB_ID.fullmatch(text) or text.count("/") > 1:
        raise InputError(
            f"{text} does not exist", cause="no such file or folder, and it is no model id", fix="Check the path."
        )
    return hub_source(text, choices)


def _require_path(path: Path) -> None:
    """A name the system does not even look up, for example one that is too long."""
    try:
        path.exists()
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path.name[:60]} cannot be looked up", cause=cause, fix="Check the path.") from error


def _folder(path: Path, choices: Choices) -> Source:
    if (path / MANIFEST).is_file():
        _refuse_hf_options(path, choices)
        return BuildSource(str(path.absolute()))
    if (path / CONFIG).is_file():
        return local_source(path, choices)
    models = sorted(item.name for item in path.glob("*.onnx"))
    raise InputError(
        f"{path.name} is not a model folder",
        cause=f"it has neither {CONFIG} nor {MANIFEST}",
        fix=f"Point at {models[0]} itself." if models else "Point at the folder that holds config.json.",
    )


def _refuse_hf_options(path: Path, choices: Choices) -> None:
    given = [
        name
        for name, value in (
            ("--revision", choices.revision),
            ("--trust-remote-code", choices.trust_remote_code),
            ("--random-weights", choices.random_weights),
        )
        if value
    ]
    if given:
        raise InputError(
            f"{' and '.join(given)} cannot be used with {path.name}",
            cause="it is not a Hugging Face model",
            fix="Leave the option out.",
        )
