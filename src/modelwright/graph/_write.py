"""Writing a model tensor by tensor, never holding more than one weight in memory beside those it has."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.graph._skeleton import varint

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
