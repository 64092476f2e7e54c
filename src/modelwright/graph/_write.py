"""Writing a model tensor by tensor, never holding more than one weight in memory beside those it has."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.graph._external import is_external
from modelwright.graph._skeleton import ByteRange, varint
from modelwright.graph._types import STRING, stored_bytes

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir
else:
    onnx = lazy("onnx")
    ir = lazy("onnx_ir")

MODEL, DATA = "model.onnx", "model.onnx.data"
# Protobuf stops at 2 GiB; the rest is room for the graph.
INLINE_BYTES = int(1.8 * 2**30)
# A graph is small: a file of it that holds more keeps weights of its own, which are not to be held in memory.
GRAPH_BYTES = 64 << 20
_NEARLY_ALL = 0.9
_STREAMED = 1024
_PIECE = 1 << 20
# Protobuf tags: field number << 3 | 2 (length-delimited).
_MODEL_GRAPH, _GRAPH_INITIALIZER, _TENSOR_RAW_DATA = b"\x3a", b"\x2a", b"\x4a"
_BEFORE_INITIALIZERS = ("node", "name")
_BEFORE_GRAPH = ("ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string")


def _nowhere(_: str) -> bool:
    return False


def write_model(model: ir.Model, folder: Path, stays: Callable[[str], bool] = _nowhere) -> Path:
    """Write `model.onnx`, with `model.onnx.data` when it would not fit in one file. Uses the model up.

    Weights of such a model that lie in a file that `stays` are left there, and `model.onnx` says where, if they are
    nearly all of that file and the others fit into the graph's.
    """
    path, left = folder / MODEL, frozenset[str]()
    if needs_data_file(model):
        left = _left_there(model, stays)
        others = (_stored(value) for name, value in model.graph.initializers.items() if name not in left)
        if not left or sum(others) > GRAPH_BYTES:
            ir.save(model, path, external_data=DATA, size_threshold_bytes=_STREAMED)
            return path
    streamed = list(_detach(model, left))
    with path.open("wb") as file:
        entries = [StreamedTensor(name, int(item.dtype), *_size(item), _writer(item)) for name, item in streamed]
        write_stream(file, ir.to_proto(model), entries)
    return path


def write_message(model: onnx.ModelProto, data: Path, folder: Path) -> Path:
    """As `write_model` does, of a message: one file, big weights last. Uses the message up. Its external data is in
    the folder `data`, and its initializers fit into one file and have bytes, or are text."""
    weights = list(model.graph.initializer)
    streamed = [weight for weight in weights if is_streamed(weight)]
    del model.graph.initializer[:]
    model.graph.initializer.extend(weight for weight in weights if not is_streamed(weight))
    path = folder / MODEL
    with path.open("wb") as file:
        write_stream(file, model, [_entry(weight, data) for weight in streamed])
    return path


def fits_one_file(model: onnx.ModelProto) -> bool:
    """Whether `write_message` can write it."""
    return sum(stored_bytes(item.data_type, item.dims) or 0 for item in model.graph.initializer) <= INLINE_BYTES


def is_streamed(tensor: onnx.TensorProto) -> bool:
    """Whether its bytes are written one weight after the other, behind the graph."""
    return tensor.data_type != STRING and (is_external(tensor) or len(tensor.raw_data) >= _STREAMED)


def data_range(tensor: onnx.TensorProto) -> tuple[str, ByteRange]:
    """Where an external tensor is: its file, and the bytes of it."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    size = stored_bytes(tensor.data_type, tensor.dims) or 0
    return entries["location"], ByteRange(int(entries.get("offset", 0)), int(entries.get("length", size)))


def _entry(tensor: onnx.TensorProto, data: Path) -> StreamedTensor:
    if not is_external(tensor):
        content = tensor.raw_data
        return StreamedTensor(
            tensor.name, tensor.data_type, tuple(tensor.dims), len(content), lambda file: _write_all(file, content)
        )
    location, span = data_range(tensor)
    copy = functools.partial(_copy, data / location, span)
    return StreamedTensor(tensor.name, tensor.data_type, tuple(tensor.dims), span.length, copy)


def _write_all(file: BinaryIO, content: bytes) -> None:
    file.write(content)


def _copy(source: Path, span: ByteRange, file: BinaryIO) -> None:
    """By the system where it can: without a copy in memory."""
    file.flush()
    begin = file.tell()
    with source.open("rb") as opened:
        done = _by_system(opened.fileno(), span, file.fileno(), begin)
        file.seek(begin + done)
        opened.seek(span.offset + done)
        while done < span.length and (piece := opened.read(min(_PIECE, span.length - done))):
            file.write(piece)
            done += len(piece)


def _by_system(source: int, span: ByteRange, target: int, begin: int) -> int:
    """So many bytes were copied: none where there is no such call, or not between these file systems."""
    done = 0
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            while done < span.length and (
                now := os.copy_file_range(source, target, span.length - done, span.offset + done, begin + done)
            ):
                done += now
    return done


def needs_data_file(model: ir.Model) -> bool:
    """Whether the weights are too large for one protobuf file."""
    return sum(_stored(value) for value in model.graph.initializers.values()) > INLINE_BYTES


def _left_there(model: ir.Model, stays: Callable[[str], bool]) -> frozenset[str]:
    """Weights that need not be written again. A file of which much is not read any more is not kept for the rest."""
    found: dict[Path, dict[str, ir.ExternalTensor]] = {}
    for name, value in model.graph.initializers.items():
        tensor = value.const_value
        if isinstance(tensor, ir.ExternalTensor) and stays(str(tensor.location)):
            found.setdefault(Path(tensor.path), {})[name] = tensor
    left: set[str] = set()
    for path, tensors in found.items():
        read = {(tensor.offset, tensor.length): tensor.nbytes for tensor in tensors.values()}
        if sum(read.values()) >= _NEARLY_ALL * path.stat().st_size:
            left.update(tensors)
    return frozenset(left)


def _detach(model: ir.Model, left: frozenset[str]) -> Iterator[tuple[str, ir.TensorProtocol]]:
    for name, value in list(model.graph.initializers.items()):
        tensor = value.const_value
        if tensor is None or tensor.dtype == ir.DataType.STRING or name in left:
            continue
        if _stored(value) >= _STREAMED or isinstance(tensor, ir.ExternalTensor):
            del model.graph.initializers[name]
            yield name, tensor


@dataclass(frozen=True, eq=False)
class StreamedTensor:
    """An initializer whose bytes are written by `write` when their turn comes."""

    name: str
    data_type: int
    dims: tuple[int, ...]
    size_bytes: int
    write: Callable[[BinaryIO], None]


def write_stream(
    file: BinaryIO,
    proto: onnx.ModelProto,
    tensors: Sequence[StreamedTensor | onnx.TensorProto],
    *,
    every: bool = False,
) -> None:
    """One ordinary ModelProto: what `proto` holds, and these initializers. Uses `proto` up. Where they are `every` one,
    it is what protobuf would write of a model that holds them itself."""
    heads = [_tensor_head(tensor) for tensor in tensors]
    lengths = [0 if isinstance(tensor, onnx.TensorProto) else tensor.size_bytes for tensor in tensors]
    sizes = [len(head) + length for head, length in zip(heads, lengths, strict=True)]
    front, back = _split(proto.graph, _BEFORE_INITIALIZERS if every else _fields(proto.graph))
    proto.ClearField("graph")
    head, tail = _split(proto, _BEFORE_GRAPH)
    total = len(front) + len(back) + sum(1 + len(varint(size)) + size for size in sizes)
    file.write(head + _MODEL_GRAPH + varint(total) + front)
    for prefix, tensor, size in zip(heads, tensors, sizes, strict=True):
        file.write(_GRAPH_INITIALIZER + varint(size))
        end = file.tell() + size
        file.write(prefix)
        if not isinstance(tensor, onnx.TensorProto):
            tensor.write(file)
        if file.tell() != end:
            raise ValueError(f"tensor {tensor.name} is not as long as its type and shape say")
    file.write(back + tail)


def _fields(proto: onnx.ModelProto | onnx.GraphProto) -> list[str]:
    return [field.name for field in proto.DESCRIPTOR.fields]


def _split(proto: onnx.ModelProto | onnx.GraphProto, first: Sequence[str]) -> tuple[bytes, bytes]:
    """Serialized, the named fields and the others."""
    parts = type(proto)(), type(proto)()
    for part in parts:
        part.CopyFrom(proto)
    for name in _fields(proto):
        parts[name in first].ClearField(name)
    front, back = (part.SerializeToString(deterministic=True) for part in parts)
    return front, back


def _tensor_head(tensor: StreamedTensor | onnx.TensorProto) -> bytes:
    if isinstance(tensor, onnx.TensorProto):
        whole: bytes = tensor.SerializeToString(deterministic=True)
        return whole
    proto = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    fields: bytes = proto.SerializeToString(deterministic=True)
    return fields + _TENSOR_RAW_DATA + varint(tensor.size_bytes)


def _size(tensor: ir.TensorProtocol) -> tuple[tuple[int, ...], int]:
    return tuple(tensor.shape.numpy()), tensor.nbytes


def _writer(tensor: ir.TensorProtocol) -> Callable[[BinaryIO], None]:
    return functools.partial(_write_tensor, tensor)


def _write_tensor(tensor: ir.TensorProtocol, file: BinaryIO) -> None:
    if isinstance(tensor, ir.ExternalTensor):
        # From file to file, without a copy in memory.
        tensor.tofile(file)
    else:
        # Not `tofile`: numpy writes a transposed weight value by value.
        file.write(tensor.tobytes())


def _stored(value: ir.Value) -> int:
    tensor = value.const_value
    return 0 if tensor is None or tensor.dtype == ir.DataType.STRING else tensor.nbytes
