"""An `.onnx` file of the user's becomes an artifact: the model and its external data, as they are."""

from __future__ import annotations

from pathlib import Path

from modelwright.build._stage import MODEL, StageResult
from modelwright.graph import external_data, load, summary
from modelwright.sources import file_digest
from modelwright.store import Artifact, Key, Store, stage_key

STAGE = "import"
VERSION = "1"


def import_model(store: Store, path: Path, label: str) -> StageResult:
    """Keyed by the bytes of all files, so that a changed model is another import. Only read, never written."""
    graph = load(path)
    found = summary(graph)
    names = sorted({tensor.location for tensor in external_data(graph)})
    compiled = sorted({node.cache_file for node in found.ep_context if node.cache_file and node.cache_present})
    files = {MODEL: path, **{name: path.parent / name for name in (*names, *compiled)}}
    digests = {name: file_digest(file) for name, file in files.items()}
    key = stage_key(stage=STAGE, version=VERSION, libraries={}, inputs=digests, params={})
    artifact = store.get(key)
    produced = artifact is None
    if artifact is None:
        artifact = _kept(store, files, key, label)
    return StageResult(STAGE, key, artifact, produced, {"nodes": found.node_count}, None)


def _kept(store: Store, files: dict[str, Path], key: Key, label: str) -> Artifact:
    roles = {name: "model" if name == MODEL else "companion" for name in files}
    return store.put(files, key=key, roles=roles, label=label)
