"""An `.onnx` file of the user's becomes an artifact: the model and its external data, as they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from modelwright.graph import external_data, load, summary
from modelwright.models import file_digest
from modelwright.plans import MODEL, StageResult
from modelwright.store import Artifact, FileEntry, Key, Store, stage_key

STAGE = "import"
VERSION = "1"


@dataclass(frozen=True)
class _Imported:
    """A model on disk: its files by the names they are stored under, and their digests."""

    files: dict[str, Path]
    digests: dict[str, str]
    nodes: int

    @property
    def key(self) -> Key:
        return stage_key(stage=STAGE, version=VERSION, libraries={}, inputs=self.digests, params={})


def import_model(store: Store, path: Path, label: str) -> StageResult:
    """Keyed by the bytes of all files, so that a changed model is another import. Only read, never written."""
    found = _look(path)
    artifact = store.get(found.key)
    produced = artifact is None
    if artifact is None:
        artifact = _kept(store, found.files, found.key, label)
    return StageResult(STAGE, found.key, artifact, produced, {"nodes": found.nodes}, None)


def foresee_import(store: Store, path: Path) -> StageResult:
    """What importing would give, with nothing stored; `produced` when the store does not have it yet."""
    found = _look(path)
    artifact = store.get(found.key)
    files = tuple(
        FileEntry(name, _role(name), found.digests[name], file.stat().st_size) for name, file in found.files.items()
    )
    missing = Artifact(found.key, "", files, {}, 0.0, store.root)
    return StageResult(STAGE, found.key, artifact or missing, artifact is None, {"nodes": found.nodes}, None)


def _look(path: Path) -> _Imported:
    graph = load(path)
    found = summary(graph)
    names = sorted({tensor.location for tensor in external_data(graph)})
    compiled = sorted({node.cache_file for node in found.ep_context if node.cache_file and node.cache_present})
    files = {MODEL: path, **{name: path.parent / name for name in (*names, *compiled)}}
    return _Imported(files, {name: file_digest(file) for name, file in files.items()}, found.node_count)


def _kept(store: Store, files: dict[str, Path], key: Key, label: str) -> Artifact:
    return store.put(files, key=key, roles={name: _role(name) for name in files}, label=label)


def _role(name: str) -> str:
    return "model" if name == MODEL else "companion"
