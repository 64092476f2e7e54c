"""Reading the input without its weights, and writing the result tensor by tensor."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from modelwright import graph as graphs
from modelwright._lazy import lazy
from modelwright.errors import InputError

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir
    import onnx_ir.passes.common as common
else:
    onnx = lazy("onnx")
    ir = lazy("onnx_ir")
    common = lazy("onnx_ir.passes.common")

MODEL = "model.onnx"
DATA = "model.onnx.data"
# Protobuf stops at 2 GiB; the rest is room for the graph.
_INLINE_LIMIT = int(1.8 * 2**30)
_STREAMED = 1024
# Protobuf tags: field number << 3 | 2 (length-delimited).
_MODEL_GRAPH, _GRAPH_INITIALIZER, _TENSOR_RAW_DATA = b"\x3a", b"\x2a", b"\x4a"
_BEFORE_GRAPH = ("ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string")


@dataclass(frozen=True)
class Source:
    """The input file, parsed; tensors stay where they are until somebody reads them."""

    path: Path
    model: ir.Model
    external: bool


def read_source(path: str) -> Source:
    """Parse and check the input. What this stage could not keep is refused."""
    graph = graphs.load(path)
    external = graphs.external_data(graph)
    if graph.model.graph.sparse_initializer or graph.model.training_info:
        raise InputError(
            f"{graph.path.name} cannot be optimized",
            cause="it holds sparse initializers or training information",
            fix="Export it for inference with dense weights.",
        )
    model: ir.Model = ir.from_proto(graph.model)
    ir.external_data.set_base_dir(model.graph, graph.folder)
    for index, span in graph.on_disk.items():
        _leave_on_disk(model, graph, graph.model.graph.initializer[index], span.offset, span.length)
    return Source(graph.path, model, bool(external))


def _leave_on_disk(model: ir.Model, graph: graphs.Graph, tensor: onnx.TensorProto, offset: int, length: int) -> None:
    """A big weight inside the `.onnx` file is read like external data that happens to be in that file."""
    model.graph.initializers[tensor.name].const_value = ir.ExternalTensor(
        graph.path.name,
        offset,
        length,
        ir.DataType(tensor.data_type),
        shape=ir.Shape(tensor.dims),
        name=tensor.name,
        base_dir=graph.folder,
    )


def copy_source(source: Source, workdir: Path) -> None:
    """The graph as it is; only the place of external weights changes."""
    if source.external:
        write_model(source.model, workdir)
    else:
        shutil.copyfile(source.path, workdir / MODEL)


def forget_origin(model: ir.Model) -> None:
    """Exporters leave stack traces with the paths of their machine in node metadata, onnxruntime doc strings."""
    common.ClearMetadataAndDocStringPass()(model)


def write_model(model: ir.Model, workdir: Path) -> None:
    """Write `model.onnx`, with `model.onnx.data` when it would not fit in one file. Uses the model up."""
    if sum(_stored(value) for value in model.graph.initializers.values()) > _INLINE_LIMIT:
        ir.save(model, workdir / MODEL, external_data=DATA, size_threshold_bytes=_STREAMED)
        return
    streamed = list(_detach(model))
    with (workdir / MODEL).open("wb") as file:
        _write_stream(file, ir.to_proto(model), streamed)


def _detach(model: ir.Model) -> Iterator[tuple[str, ir.TensorProtocol]]:
    for name, value in list(model.graph.initializers.items()):
        tensor = value.const_value
        if tensor is None or tensor.dtype == ir.DataType.STRING:
            continue
        if _stored(value) >= _STREAMED or isinstance(tensor, ir.ExternalTensor):
            del model.graph.initializers[name]
            yield name, tensor


def _write_stream(file: BinaryIO, proto: onnx.ModelProto, tensors: list[tuple[str, ir.TensorProtocol]]) -> None:
    """One ordinary ModelProto, written without ever holding more than one weight in memory."""
    entries = [(_tensor_head(name, tensor), tensor) for name, tensor in tensors]
    sizes = [len(head) + tensor.nbytes for head, tensor in entries]
    body = proto.graph.SerializeToString(deterministic=True)
    proto.ClearField("graph")
    head, tail = onnx.ModelProto(), onnx.ModelProto()
    for part in (head, tail):
        part.CopyFrom(proto)
    for field in proto.DESCRIPTOR.fields:
        (tail if field.name in _BEFORE_GRAPH else head).ClearField(field.name)
    total = len(body) + sum(1 + len(_varint(size)) + size for size in sizes)
    file.write(head.SerializeToString(deterministic=True) + _MODEL_GRAPH + _varint(total) + body)
    for (prefix, tensor), size in zip(entries, sizes, strict=True):
        file.write(_GRAPH_INITIALIZER + _varint(size))
        end = file.tell() + size
        file.write(prefix)
        _write_tensor(file, tensor)
        if file.tell() != end:
            raise ValueError(f"tensor {tensor.name} is not as long as its type and shape say")
    file.write(tail.SerializeToString(deterministic=True))


def _tensor_head(name: str, tensor: ir.TensorProtocol) -> bytes:
    proto = onnx.TensorProto(name=name, data_type=int(tensor.dtype), dims=tensor.shape.numpy())
    fields: bytes = proto.SerializeToString(deterministic=True)
    return fields + _TENSOR_RAW_DATA + _varint(tensor.nbytes)


def _write_tensor(file: BinaryIO, tensor: ir.TensorProtocol) -> None:
    if isinstance(tensor, ir.ExternalTensor):
        # From file to file, without a copy in memory.
        tensor.tofile(file)
    else:
        file.write(tensor.tobytes())


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _stored(value: ir.Value) -> int:
    tensor = value.const_value
    return 0 if tensor is None or tensor.dtype == ir.DataType.STRING else tensor.nbytes
