"""From a path to a parsed model; never the weights of external files, never a write."""

from __future__ import annotations

import functools
import io
import mmap
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy, lazy_messages
from modelwright.errors import InputError
from modelwright.graph._bodies import Body, bodies
from modelwright.graph._flaws import first_flaw
from modelwright.graph._skeleton import LARGE, ByteRange, Skeleton, skeleton
from modelwright.graph._sniff import HEAD, can_be_model, suspect
from modelwright.graph._text import damaged_name

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy_messages()
protobuf = lazy("google.protobuf.message")  # has no type stubs

PROTOBUF_LIMIT = 2**31 - 1
_FIRST_IR_WITH_OPSETS = 3
FileStamp = tuple[int, int, int]  # see file_stamp
_NEEDED = "Point at an .onnx file."
_EXPORT = "Export the model again, or copy it again from where it works."
_AGAIN = "Copy or download the file again and compare its size with the original."


class DamagedFileError(InputError):
    """No whole ONNX model: empty, cut short, or something else under its name."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A parsed model and where it came from. Weights stay on disk.

    `model` is complete but for the `raw_data` of initializers of 64 KiB and more: `on_disk` says, by index of
    the initializer, where in the file they are. `stamp` says which file that was. A `shared` one is looked at by
    several readers, so none of them may change it.
    """

    path: Path
    model: onnx.ModelProto
    bodies: tuple[Body, ...]
    on_disk: Mapping[int, ByteRange]
    stamp: FileStamp
    shared: bool = False

    @property
    def file_bytes(self) -> int:
        return self.stamp[0]

    @property
    def folder(self) -> Path:
        """Where external data is looked up: beside the path as given, links not followed."""
        return self.path.parent


def load(path: str | Path) -> Graph:
    """Read a `.onnx` file, or say what it is instead."""
    path = Path(path).absolute()
    head, content, stamp = _read(path)
    model = _parse(path, content.data, head)
    graph = Graph(path, model, bodies(model), content.left_out, stamp)
    _require_model(graph, head)
    return graph


def mentions(path: str | Path, word: bytes) -> bool:
    """Is the word anywhere in the file but in large weights? What it does not mention it does not have: no operator, no
    name. Nothing is parsed, and nobody need import a parser."""
    path = Path(path).absolute()
    try:
        stamp = file_stamp(path.stat())
    except OSError:
        stamp = (0, 0, 0)  # reading it says what is wrong
    return word in _text(path, stamp)


@functools.lru_cache(4)
def _text(path: Path, stamp: FileStamp) -> bytes:
    return _read(path)[1].data


def shared(path: str | Path) -> Graph:
    """As `load`, for those who change nothing in it: a file that was not touched since is not parsed again."""
    path = Path(path).absolute()
    try:
        stamp = file_stamp(path.stat())
    except OSError:
        return load(path)  # it says what is wrong
    return _shared(path, stamp)


def parsed(path: str | Path) -> Graph | None:
    """The `shared` graph of a file, where somebody asked for it before and nobody touched the file since."""
    path = Path(path).absolute()
    found = _RECENT.get(path)
    return found if found is not None and found.stamp == file_stamp(path.stat()) else None


# A command has one model or two; with more of them the ones before are parsed again.
_RECENT: dict[Path, Graph] = {}
_MOST_RECENT = 4


def _shared(path: Path, stamp: FileStamp) -> Graph:
    found = _RECENT.pop(path, None)
    if found is None or found.stamp != stamp:
        found = replace(load(path), shared=True)
    _RECENT[path] = found
    for oldest in list(_RECENT)[:-_MOST_RECENT]:
        _RECENT.pop(oldest, None)
    return found


def file_stamp(status: os.stat_result) -> FileStamp:
    """Enough to notice that a file was replaced, also by one of the same size and time, or rewritten."""
    return status.st_size, status.st_mtime_ns, status.st_ino


def _read(path: Path) -> tuple[bytes, Skeleton, FileStamp]:
    try:
        if not (path.is_file() or path.is_dir()) and path.exists():
            # Opening a pipe would wait for whoever writes to it.
            raise InputError(f"{path.name} is not a file", cause="it is a pipe, a device or a socket", fix=_NEEDED)
        with path.open("rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            head = file.read(HEAD)
            _require_plausible(path, head, status.st_size)
            return head, _content(file), file_stamp(status)
    except FileNotFoundError as error:
        raise _missing(path) from error
    except (IsADirectoryError, PermissionError, NotADirectoryError) as error:
        # Windows answers PermissionError for a folder.
        raise _is_folder(path) if path.is_dir() else _unreadable(path, error) from error
    except OSError as error:
        raise _unreadable(path, error) from error


def _content(file: io.FileIO) -> Skeleton:
    if os.fstat(file.fileno()).st_size > LARGE:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
            content = skeleton(view)
        if content:
            return content
    file.seek(0)
    return Skeleton(file.readall(), {})


def _require_plausible(path: Path, head: bytes, size: int) -> None:
    if not head:
        raise DamagedFileError(f"{path.name} is empty", cause="the file has 0 bytes; the disk was full?", fix=_AGAIN)
    if not can_be_model(head):
        raise _not_a_model(path, head)
    if size > PROTOBUF_LIMIT:
        guess = suspect(head)
        raise InputError(
            f"{path.name} is too large for one ONNX file ({size / 2**30:.1f} GiB)",
            cause=guess.what if guess else "protobuf cannot read messages over 2 GiB",
            fix=guess.fix
            if guess
            else "Save the model with external data: onnx.save(..., save_as_external_data=True).",
        )


def _parse(path: Path, data: bytes, head: bytes) -> onnx.ModelProto:
    try:
        model: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except protobuf.DecodeError as error:
        if suspect(head) or not _begins_like_model(data):
            raise _not_a_model(path, head) from error
        raise DamagedFileError(
            f"{path.name} is damaged or cut short",
            cause=f"its protobuf ends or breaks inside a field ({len(data):,} bytes)",
            fix=_AGAIN,
        ) from error
    return model


def _begins_like_model(data: bytes) -> bool:
    """All known writers put ir_version first: a tag of 0x08, then a small number."""
    return data[0] == 0x08 and 0 < int.from_bytes(data[1:2], "little") < 0x80


def _require_model(graph: Graph, head: bytes) -> None:
    """Protobuf reads many other bytes as an empty message, and a cut at a field border as a smaller one."""
    model = graph.model
    if not model.HasField("graph"):
        # A file that holds nothing but a version and a producer was cut in front of the graph.
        if model.ir_version and (model.producer_name or len(head) <= 16):
            raise _cut(graph.path, "it ends before the graph")
        raise _not_a_model(graph.path, head)
    if not model.ir_version:
        raise _not_a_model(graph.path, head)
    if not model.graph.node and not model.graph.output:
        raise InputError(
            f"{graph.path.name} holds an empty graph",
            cause="it has no nodes and no outputs",
            fix="Export the model again; the exporter wrote nothing.",
        )
    if model.ir_version >= _FIRST_IR_WITH_OPSETS and not model.opset_import:
        raise _cut(graph.path, "the opset imports that follow the graph are missing")
    damaged = damaged_name(model, graph.bodies)
    if damaged:
        cause = f"a name inside it is not text: {damaged}"
        raise DamagedFileError(f"{graph.path.name} is damaged", cause=cause, fix=_AGAIN)
    flaw = first_flaw(model, graph.bodies, graph.on_disk)
    if flaw:
        raise InputError(f"{graph.path.name} is not a valid model", cause=flaw, fix=_EXPORT)


def _cut(path: Path, cause: str) -> DamagedFileError:
    return DamagedFileError(f"{path.name} is cut short", cause=cause, fix=_AGAIN)


def _not_a_model(path: Path, head: bytes) -> DamagedFileError:
    guess = suspect(head)
    return DamagedFileError(
        f"{path.name} is not an ONNX model",
        cause=guess.what if guess else "it does not begin like one (external weights, or another binary format?)",
        fix=guess.fix if guess else "Point at the .onnx file itself.",
    )


def _missing(path: Path) -> InputError:
    if path.is_symlink():
        return InputError(
            f"{path.name} is a broken link",
            cause="the file it points at is gone (a pruned download cache?)",
            fix="Download the model again.",
        )
    return InputError(f"{path} does not exist", cause="no such file", fix=_nearby(path.parent))


def _is_folder(path: Path) -> InputError:
    return InputError(f"{path.name} is a folder", cause="an .onnx file is needed here", fix=_nearby(path))


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"{path.name} cannot be read",
        cause=error.strerror or type(error).__name__,
        fix="Check the permissions of the file and of its folder.",
    )


def _nearby(folder: Path) -> str:
    try:
        names = sorted(item.name for item in folder.glob("*.onnx"))[:3]
    except OSError:
        names = []
    if not names:
        return "Check the path; that folder holds no .onnx file."
    return f"Check the path; that folder holds {', '.join(names)}."
