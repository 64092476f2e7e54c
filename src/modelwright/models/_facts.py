"""What a build has to know about an `.onnx` file before anything is made of it, found out once for the same content."""

from __future__ import annotations

import contextlib
import functools
import os
import stat
from pathlib import Path

from modelwright import __version__, home
from modelwright._dataclass import dataclass
from modelwright._json import digest, dumps, loads
from modelwright._output import SEAL, is_sealed, sealed
from modelwright.graph import FileStamp, facts, file_stamp, shared
from modelwright.models._digest import file_digest
from modelwright.models._guess import symbolic_dims
from modelwright.store import remembers

_VERSION = 1
_FOLDER = "facts"


@dataclass(frozen=True)
class ModelFacts:
    """`weights` are files beside the model with their sizes, `compiled_for` the EPs of EPContext nodes in it, `parts`
    all files beside it. `symbolic` are dimensions of inputs that are no numbers."""

    nodes: int
    precision: str | None
    compiled_for: tuple[str, ...]
    weights: tuple[tuple[str, int], ...]
    parts: tuple[str, ...]
    symbolic: tuple[str, ...]


_seen: dict[str, ModelFacts] = {}


def model_facts(path: str | Path) -> ModelFacts:
    """Not parsed again, also not by another process, while the file and the weights beside it are what they were."""
    # Not a Path yet: large plans ask a hundred thousand times.
    place = os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118
    try:
        status = os.stat(place)  # noqa: PTH116
    except (OSError, ValueError):
        return _looked_up(Path(place))  # reading it says what is wrong
    if not stat.S_ISREG(status.st_mode):
        return _looked_up(Path(place))
    key = _key(place, file_stamp(status))
    found = _seen.get(key) or _recalled(key)
    if found is None or not all(_has(Path(place).parent / name, size) for name, size in found.weights):
        found = _looked_up(Path(place))
        _remember(key, found)
    _seen[key] = found
    return found


@functools.lru_cache(1024)
def _key(path: str, stamp: FileStamp) -> str:
    return digest([_VERSION, __version__, file_digest(Path(path))])


def _looked_up(path: Path) -> ModelFacts:
    seen = facts(path)
    return ModelFacts(
        nodes=seen.node_count,
        precision=seen.precision.label,
        compiled_for=tuple(node.source or "some EP" for node in seen.ep_context),
        weights=tuple((item.name, item.size_bytes or 0) for item in seen.files if item.role == "weights"),
        parts=tuple(item.name for item in seen.files if item.role != "model"),
        symbolic=tuple(sorted(symbolic_dims(shared(path)))),
    )


def _recalled(key: str) -> ModelFacts | None:
    """None when nothing is known. A note that is torn (its seal tells) is none."""
    try:
        data = _note(key).read_bytes()
    except OSError:
        return None
    if not is_sealed(data):
        return None
    document = loads(data)
    return ModelFacts(
        nodes=document["nodes"],
        precision=document["precision"],
        compiled_for=tuple(document["compiled_for"]),
        weights=tuple((name, size) for name, size in document["weights"]),
        parts=tuple(document["parts"]),
        symbolic=tuple(document["symbolic"]),
    )


def _has(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def _remember(key: str, found: ModelFacts) -> None:
    """Quietly nothing where nothing can be written, or where nothing may be."""
    if remembers():
        with contextlib.suppress(OSError):
            _note(key).parent.mkdir(parents=True, exist_ok=True)
            _note(key).write_bytes(sealed(dumps({**vars(found), "seal": SEAL})))


def _note(key: str) -> Path:
    return home.home() / _FOLDER / key
