"""Embedding tables: quantized like weights, because they are weights, and usually the largest ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.graph import pieces
from modelwright.stages.quantize._params import ALL_OPERATORS
from modelwright.stages.quantize._weights import Detached

if TYPE_CHECKING:
    import numpy as np
    import onnx
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

_SMALLEST = 1024


@dataclass(frozen=True)
class QuantizedTable:
    """A Gather and the stored float table it reads."""

    node: str
    name: str


def table_nodes(model: onnx.ModelProto, excluded: set[str], op_types: tuple[str, ...]) -> tuple[QuantizedTable, ...]:
    """Gathers from stored float tables, unless the request leaves Gather out."""
    if op_types and "Gather" not in op_types and op_types != (ALL_OPERATORS,):
        return ()
    stored = {
        tensor.name
        for tensor in model.graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT and np.prod(tensor.dims) >= _SMALLEST
    }
    return tuple(
        QuantizedTable(node.name, node.input[0])
        for node in model.graph.node
        if node.op_type == "Gather" and node.input[0] in stored and node.name not in excluded
    )


def quantize_tables(model: onnx.ModelProto, tables: tuple[QuantizedTable, ...], bits: int, weights: Detached) -> None:
    """Gather from DequantizeLinear(table), and a pair with the same scale behind it.

    That form lets onnxruntime gather the small integers, and QNN claim the Gather; the table's own pair keeps
    its width even where activations are wider.
    """
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    domain = _domain(model, bits)
    done: dict[str, str] = {}
    for table in tables:
        if table.name not in done:
            done[table.name] = _store(model, stored[table.name], bits, weights)
        _rewire(model, table, done[table.name], domain)
    _drop_unused(model, set(done))


def _store(model: onnx.ModelProto, tensor: onnx.TensorProto, bits: int, weights: Detached) -> str:
    values = weights.values(tensor)
    kind = np.dtype(f"uint{bits}")
    most = float(np.iinfo(kind).max)
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    scale = np.float32(max(high - low, 1e-4) / most)
    zero = np.round(-low / scale).clip(0, most)
    rows = (np.clip(np.rint(block / scale) + zero, 0, most).astype(kind) for block in pieces(values))
    base, code = f"{tensor.name}_table", onnx.helper.np_dtype_to_tensor_dtype(kind)
    model.graph.initializer.append(weights.store(f"{base}_quantized", code, tensor.dims, rows))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(scale), f"{base}_scale"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(zero, kind), f"{base}_zero_point"))
    return base


def _rewire(model: onnx.ModelProto, table: QuantizedTable, base: str, domain: str) -> None:
    index, node = next((i, node) for i, node in enumerate(model.graph.node) if node.name == table.node)
    result = node.output[0]
    scale = [f"{base}_scale", f"{base}_zero_point"]
    names = {part: f"{table.node}_{part}" for part in ("table", "gathered", "packed")}
    node.input[0] = names["table"]
    node.output[0] = names["gathered"]
    before = _half("DequantizeLinear", [f"{base}_quantized", *scale], names["table"], table.node, domain)
    packed = _half("QuantizeLinear", [names["gathered"], *scale], names["packed"], table.node, domain)
    after = _half("DequantizeLinear", [names["packed"], *scale], result, table.node, domain)
    model.graph.node.insert(index, before)
    model.graph.node.insert(index + 2, packed)
    model.graph.node.insert(index + 3, after)


def _half(kind: str, inputs: list[str], result: str, owner: str, domain: str) -> onnx.NodeProto:
    """One node of a pair, named after its Gather: the tensor's own pair is named after the tensor."""
    return onnx.helper.make_node(kind, inputs, [result], name=f"{owner}_{result}_{kind}", domain=domain)


def _domain(model: onnx.ModelProto, bits: int) -> str:
    opset = next(item.version for item in model.opset_import if item.domain in ("", "ai.onnx"))
    if bits <= 8 or opset >= 21:
        return ""
    if not any(item.domain == "com.microsoft" for item in model.opset_import):
        model.opset_import.add(domain="com.microsoft", version=1)
    return "com.microsoft"


def _drop_unused(model: onnx.ModelProto, names: set[str]) -> None:
    used = {name for node in model.graph.node for name in node.input}
    for index in reversed(range(len(model.graph.initializer))):
        name = model.graph.initializer[index].name
        if name in names and name not in used:
            del model.graph.initializer[index]
