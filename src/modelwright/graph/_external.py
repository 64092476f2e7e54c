"""Weights in files beside the model: where they are, and whether they can be what the graph says.

They must be regular files of the model's folder, also when links are followed. The one exception is the Hub's own
cache, where a snapshot links to blobs beside it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from modelwright._belongs import foreign
from modelwright._dataclass import dataclass
from modelwright.errors import InputError
from modelwright.graph._load import Graph, mentions, parsed, shared
from modelwright.graph._types import dtype_name, stored_bytes

if TYPE_CHECKING:
    import onnx

_EXTERNAL = 1  # TensorProto.DataLocation
# Longer than any file; Python itself refuses to read numbers of thousands of digits.
_MOST_DIGITS = 100
# A tensor names its file under the first word; the second is the operator that may name a compiled one.
_ELSEWHERE = (b"location", b"EPContext")
_ORT_MEMORY = "*/_ORT_MEM_ADDR_/*"
# A location as written → the file it names, and its size.
_Files = dict[str, tuple[str, int]]
_AGAIN = "Copy the model again together with all its data files, or export it again."


class ExternalDataError(InputError):
    """A file of weights beside the model is missing, cut short, or not what the graph says."""


@dataclass(frozen=True)
class ExternalTensor:
    """One tensor's bytes in a file beside the model; checked against the file's size."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    location: str
    path: Path
    offset: int
    length: int


def external_data(graph: Graph) -> tuple[ExternalTensor, ...]:
    """Every tensor stored outside the `.onnx` file. Anything missing, outside or impossible is refused."""
    files: _Files = {}
    found = tuple(
        _checked(graph, tensor, files) for body in graph.bodies for tensor in body.tensors() if is_external(tensor)
    )
    _refuse_overlap(graph, found)
    return found


def stands_alone(path: str | Path) -> bool:
    """Can the file name no other one? False means: parse it to know. That is said of one that was parsed already."""
    return parsed(path) is None and not any(mentions(path, word) for word in _ELSEWHERE)


def model_bytes(path: str | Path) -> int:
    """What a model takes on disk, with its weights in other files. One that stands alone is not parsed."""
    outside = () if stands_alone(path) else {item.path for item in external_data(shared(path))}
    return sum(Path(item).stat().st_size for item in (path, *outside))


def is_external(tensor: onnx.TensorProto) -> bool:
    return tensor.data_location == _EXTERNAL


def locate(graph: Graph, tensor: onnx.TensorProto) -> ExternalTensor:
    """Where one external tensor lives, checked against the file as it is now."""
    return _checked(graph, tensor, {})


def inside_folder(graph: Graph, location: str, what: str) -> str:
    """The location, tidied, relative to the model's folder; refused when it leads out of it."""
    if location.startswith(_ORT_MEMORY):
        cause = "its location is an address in the memory of the process that saved it"
        raise ExternalDataError(f"{what} was never written to a file", cause=cause, fix="Save the model again.")
    # Both conventions are checked on every platform, so a model is refused everywhere or nowhere.
    windows, posix = PureWindowsPath(location), PurePosixPath(location)
    if windows.drive or windows.root or posix.root:
        raise _outside(graph, location, what, "is an absolute path")
    tidy = posixpath.normpath(location.replace("\\", "/"))
    if not location or tidy == ".":
        raise _outside(graph, location, what, "names no file")
    why = "leads outside the model's folder" if tidy.split("/")[0] == ".." else foreign(graph.folder, tidy)
    if why is not None:
        raise _outside(graph, location, what, why)
    return tidy


def _checked(graph: Graph, tensor: onnx.TensorProto, files: _Files) -> ExternalTensor:
    what = f"external data of tensor '{tensor.name}'"
    entries = {entry.key: entry.value for entry in tensor.external_data}
    written = entries.get("location", "")
    if written not in files:
        location = inside_folder(graph, written, what)
        files[written] = location, _file_size(graph, location, what)
    location, size = files[written]
    expected = stored_bytes(tensor.data_type, tensor.dims)
    if expected is None or min(tensor.dims, default=0) < 0:
        raise _wrong(graph, what, f"{dtype_name(tensor.data_type)} {list(tensor.dims)} has no size in bytes")
    offset = _number(graph, entries.get("offset", "0"), what, "offset")
    length = _number(graph, entries.get("length", str(expected)), what, "length")
    if length != expected:
        shape = f"{dtype_name(tensor.data_type)} {list(tensor.dims)}"
        raise _wrong(graph, what, f"its length is {length:,} bytes, but {shape} takes {expected:,}")
    if offset + length > size:
        raise ExternalDataError(
            f"{location} is cut short",
            cause=f"tensor '{tensor.name}' ends at byte {offset + length:,}, the file at {size:,}",
            fix=_AGAIN,
        )
    shape_now = tuple(tensor.dims)
    path = graph.folder / location
    return ExternalTensor(tensor.name, dtype_name(tensor.data_type), shape_now, location, path, offset, length)


def _number(graph: Graph, text: str, what: str, key: str) -> int:
    # isdecimal alone lets other scripts' digits through, and int() accepts "1_0" and " 1".
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise _wrong(graph, what, f"its {key} is '{text[:40]}', not a number of bytes")
    return int(text)


def _file_size(graph: Graph, location: str, what: str) -> int:
    path = graph.folder / location
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        cause = f"{graph.path.name} keeps weights in it ({what})"
        if path.is_symlink():
            cause = "it is a link to a file that is gone (a pruned download cache?)"
        fix = f"Put {location} beside {graph.path.name} under exactly this name, or export the model again."
        raise ExternalDataError(f"{location} is missing", cause=cause, fix=fix) from error
    except OSError as error:
        fix = "Check the permissions of the file and of its folder."
        raise ExternalDataError(
            f"{location} cannot be read", cause=error.strerror or type(error).__name__, fix=fix
        ) from error
    return status.st_size


def _refuse_overlap(graph: Graph, tensors: Iterable[ExternalTensor]) -> None:
    """Two tensors may share one range (tied weights); half of one is a mistake."""
    ends: dict[str, tuple[int, str]] = {}
    ranges = {(item.location, item.offset, item.length): item for item in tensors if item.length}
    for location, offset, length in sorted(ranges):
        name = ranges[location, offset, length].name
        end, other = ends.get(location, (0, ""))
        if offset < end:
            what = f"external data of tensor '{name}'"
            raise _wrong(graph, what, f"in {location} it overlaps tensor '{other}'")
        ends[location] = offset + length, name


def _outside(graph: Graph, location: str, what: str, why: str) -> ExternalDataError:
    return ExternalDataError(
        f"{graph.path.name} is refused",
        cause=f"the {what} {why}: '{location[:200]}'",
        fix="Save the model again with its data files in its own folder, and only if you trust its origin.",
    )


def _wrong(graph: Graph, what: str, cause: str) -> ExternalDataError:
    return ExternalDataError(f"the {what} in {graph.path.name} is wrong", cause=cause, fix=_AGAIN)
