"""A model without its big weights, for questions about the graph alone."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.stages.optimize._inventory import Snapshot, op_label

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir
else:
    onnx = lazy("onnx")
    ir = lazy("onnx_ir")

_HOLE = "zeros"
# The oldest models leave the type out.
_UNTYPED, _GRAPH, _GRAPHS = 0, 5, 10
# Masks, shapes, scales and epsilons decide whether a pattern matches; matrices do not.
BIG = 16 * 1024


@dataclass(frozen=True)
class WeightlessModel:
    """The graph as bytes, and the names in it.

    Its big weights are one hole in a file of `folder`; small constants keep their values.
    """

    data: bytes
    folder: Path
    found: Snapshot
    names: frozenset[str]


def without_weights(model: ir.Model, folder: Path) -> WeightlessModel:
    """A copy without big weights of a model; the model itself stays as it is."""
    weights = {value: value.const_value for graph in model.graphs() for value in graph.initializers.values()}
    try:
        for value, tensor in weights.items():
            if tensor is None or tensor.dtype == ir.DataType.STRING:
                continue
            if tensor.nbytes >= BIG and value.graph is model.graph:
                _grow(folder, tensor.nbytes)
                shape = ir.Shape(tensor.shape.numpy())
                value.const_value = ir.ExternalTensor(
                    _HOLE, 0, tensor.nbytes, tensor.dtype, shape=shape, name=value.name or "", base_dir=folder
                )
            elif isinstance(tensor, ir.ExternalTensor):
                value.const_value = ir.tensor(tensor.numpy(), dtype=tensor.dtype, name=value.name)
        return _light(ir.to_proto(model), folder)
    finally:
        for value, tensor in weights.items():
            value.const_value = tensor


def read_thin(path: Path, folder: Path) -> WeightlessModel:
    """A copy without big weights of what onnxruntime wrote: weights it computed anew become holes too."""
    proto = onnx.load(str(path), load_external_data=False)
    for tensor in proto.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            size = next(int(entry.value) for entry in tensor.external_data if entry.key == "length")
        else:
            size = len(tensor.raw_data)
        if size >= BIG:
            _grow(folder, size)
            _empty(tensor, size)
    return _light(proto, folder)


def with_weights(light: WeightlessModel, model: ir.Model) -> ir.Model:
    """The graph of `light` with the weights of the model that it was made from."""
    full: ir.Model = ir.from_proto(onnx.ModelProto.FromString(light.data))
    held = {name: value.const_value for name, value in model.graph.initializers.items()}
    # onnxruntime makes initializers of Constant nodes.
    held |= {node.outputs[0].name or "": _constant(node) for node in model.graph if node.op_type == "Constant"}
    for name, value in full.graph.initializers.items():
        if isinstance(value.const_value, ir.ExternalTensor):
            value.const_value = held[name]
    return full


def _constant(node: ir.Node) -> ir.TensorProtocol | None:
    found = node.attributes.get("value")
    return found.as_tensor() if found is not None else None


def fold_movement(light: WeightlessModel) -> WeightlessModel:
    """What constant folding makes of transposed and cast weights, without moving the zeros around."""
    proto = onnx.ModelProto.FromString(light.data)
    weights = {tensor.name: tensor for tensor in proto.graph.initializer}
    outputs = {value.name for value in proto.graph.output}
    kept = [node for node in proto.graph.node if not _fold(node, weights, outputs, proto, light.folder)]
    del proto.graph.node[:]
    proto.graph.node.extend(kept)
    return _light(proto, light.folder)


def _fold(
    node: onnx.NodeProto,
    weights: dict[str, onnx.TensorProto],
    outputs: set[str],
    proto: onnx.ModelProto,
    folder: Path,
) -> bool:
    source = weights.get(node.input[0]) if node.input else None
    if source is None or node.domain or source.data_location != onnx.TensorProto.EXTERNAL:
        return False
    if node.op_type != "Transpose" or node.output[0] in outputs:
        return False
    perm = next((list(item.ints) for item in node.attribute), list(reversed(range(len(source.dims)))))
    result = proto.graph.initializer.add(name=node.output[0], data_type=source.data_type)
    result.dims.extend(source.dims[axis] for axis in perm)
    _empty(result, next(int(entry.value) for entry in source.external_data if entry.key == "length"))
    weights[result.name] = result
    return True


def _light(proto: onnx.ModelProto, folder: Path) -> WeightlessModel:
    counts = Counter(op_label(node.domain, node.op_type) for node in nodes_of(proto))
    # Sorted, and without the inferred shapes: the order in the file is onnxruntime's own affair.
    parts = (*proto.graph.node, *proto.graph.output, *proto.graph.initializer)
    digest = hashlib.sha256(b"".join(sorted(part.SerializeToString(deterministic=True) for part in parts)))
    found = Snapshot(tuple(sorted(counts.items())), digest.digest())
    names = {tensor.name for tensor in proto.graph.initializer}
    names.update(name for node in proto.graph.node for name in node.output)
    return WeightlessModel(proto.SerializeToString(), folder, found, frozenset(names))


def _empty(tensor: onnx.TensorProto, size: int) -> None:
    tensor.ClearField("raw_data")
    del tensor.external_data[:]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", _HOLE), ("offset", "0"), ("length", str(size))):
        tensor.external_data.add(key=key, value=value)


def _grow(folder: Path, size: int) -> None:
    """The hole is as long as the longest weight; file systems store it as nothing."""
    path = folder / _HOLE
    if not path.exists() or path.stat().st_size < size:
        with path.open("ab") as file:
            file.truncate(size)


def nodes_of(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Those of subgraphs and of local functions too."""
    pending = [proto.graph.node, *(function.node for function in proto.functions)]
    while pending:
        for node in pending.pop():
            yield node
            # Asking is cheaper than an empty loop, and most nodes have none.
            for attribute in node.attribute if node.attribute else ():
                if attribute.type in (_UNTYPED, _GRAPH, _GRAPHS):
                    pending += [graph.node for graph in (attribute.g, *attribute.graphs) if graph.node]
