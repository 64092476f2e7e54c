"""An `.onnx` file of the user's becomes an artifact: the model and its external data, as they are."""

from __future__ import annotations

from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright.errors import InputError
from modelwright.models import file_digest, model_facts
from modelwright.plans import MODEL, StageResult
from modelwright.store import Artifact, FileEntry, Key, Store, stage_key

STAGE = "import"
VERSION = "1"


@dataclass(frozen=True)
class ImportOutcome:
    nodes: int


def import_model(store: Store, path: Path, label: str) -> StageResult[ImportOutcome]:
    """Keyed by the bytes of all files, so that a changed model is another import. Only read, never written."""
    files = _files(path)
    key = _key(files)
    artifact = store.get(key)
    produced = artifact is None
    if artifact is None:
        artifact = store.put(files, key=key, roles={name: _role(name) for name in files}, label=label)
    return _result(path, artifact, produced=produced)


def foresee_import(store: Store, path: Path) -> StageResult[ImportOutcome]:
    """What importing would give, with nothing stored; `produced` when the store does not have it yet."""
    files = _files(path)
    key = _key(files)
    artifact = store.get(key)
    listed = tuple(FileEntry(name, _role(name), file_digest(file), file.stat().st_size) for name, file in files.items())
    return _result(path, artifact or Artifact(key, "", listed, {}, 0.0, store.root), produced=artifact is None)


def _refuse_compiled(path: Path) -> None:
    compiled = model_facts(path).compiled_for
    if compiled:
        raise InputError(
            f"{path.name} is already compiled",
            cause=f"it holds an EPContext node for {compiled[0]}",
            fix="build from the model it was compiled from",
        )


def _result(path: Path, artifact: Artifact, *, produced: bool) -> StageResult[ImportOutcome]:
    return StageResult(STAGE, ImportOutcome, artifact.key, artifact, produced, {"nodes": model_facts(path).nodes})


def _files(path: Path) -> dict[str, Path]:
    """The model's files by the names they are stored under."""
    _refuse_compiled(path)
    return {MODEL: path, **{name: path.parent / name for name, _ in sorted(model_facts(path).weights)}}


def _key(files: dict[str, Path]) -> Key:
    digests = {name: file_digest(file) for name, file in files.items()}
    return stage_key(stage=STAGE, version=VERSION, libraries={}, inputs=digests, params={})


def _role(name: str) -> str:
    return "model" if name == MODEL else "companion"
