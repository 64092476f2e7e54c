"""Changes of numbers that a target or a quantizer needs, each in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.stages.optimize._inventory import every_node

if TYPE_CHECKING:
    import ml_dtypes
    import numpy as np
    import onnx_ir as ir
else:
    ml_dtypes = lazy("ml_dtypes")
    np = lazy("numpy")
    ir = lazy("onnx_ir")

# Mask fillers in the wild are -inf, the lowest float and -1e9; exp(-1e3) is 0 in every float type all the same.
_FILLER = 1e9
_MILD = 1e3

Change = Callable[["np.ndarray"], "np.ndarray | None"]


def clamp_infinities(model: ir.Model) -> int:
    """Constants that are infinite get the largest finite value of their type. The number of tensors changed."""
    return _change_constants(model, _finite)


def clamp_mask_constants(model: ir.Model) -> int:
    """Constants beyond 1e9 become 1e3, so that a quantizer's range is not lost on mask fillers."""
    return _change_constants(model, _mild)


def drop_isnan_guard(model: ir.Model) -> int:
    """Where(IsNaN(s), c, s) is s, for a softmax s that never sees a row of nothing but -inf."""
    count = 0
    for node in list(every_node(model)):
        if node.op_type == "Where" and not node.domain and (softmax := _guarded(node)) is not None:
            condition = node.inputs[0]
            bypass(node, softmax)
            guard = condition.producer() if condition is not None else None
            if guard is not None and guard.graph is not None and not guard.outputs[0].uses():
                guard.graph.remove(guard, safe=True)
            count += 1
    return count


def bypass(node: ir.Node, value: ir.Value) -> None:
    """Remove a node whose first output equals `value`, keeping the names of graph outputs."""
    graph, old = node.graph, node.outputs[0]
    if graph is None:
        raise ValueError("a node outside any graph cannot be removed")
    if needs_own_producer(node, value):
        ir.convenience.replace_nodes_and_values(
            graph, node, [node], [identity := ir.node("Identity", [value])], [old], identity.outputs
        )
        return
    if old.is_graph_output():
        value.name, old.name = old.name, None
        value.type, value.shape = value.type or old.type, value.shape or old.shape
    ir.convenience.replace_all_uses_with(old, value, replace_graph_outputs=True)
    graph.remove(node, safe=True)


def needs_own_producer(node: ir.Node, value: ir.Value) -> bool:
    """The node gives an output, and `value` is an input, a weight, another output, or from outside of this graph."""
    elsewhere = value.producer() is None or value.is_graph_output() or value.graph is not node.graph
    return node.outputs[0].is_graph_output() and elsewhere


def _guarded(where: ir.Node) -> ir.Value | None:
    condition, value = where.inputs[0], where.inputs[2]
    guard = condition.producer() if condition is not None else None
    softmax = value.producer() if value is not None else None
    if guard is None or softmax is None or guard.op_type != "IsNaN" or softmax.op_type != "Softmax":
        return None
    return value if guard.inputs[0] is value else None


def _finite(array: np.ndarray) -> np.ndarray | None:
    infinite = np.isinf(array)
    if not infinite.any():
        return None
    limit = _largest(array)
    return np.where(infinite, np.copysign(limit, array).astype(array.dtype), array)


def _mild(array: np.ndarray) -> np.ndarray | None:
    # float16 ends at 65504, so there its largest value is the filler.
    threshold = min(_FILLER, _largest(array))
    extreme = np.abs(array) >= threshold
    if not extreme.any():
        return None
    return np.where(extreme, np.copysign(array.dtype.type(_MILD), array).astype(array.dtype), array)


def _largest(array: np.ndarray) -> float:
    """numpy knows no bfloat16, ml_dtypes knows them all."""
    return float(ml_dtypes.finfo(array.dtype).max)  # type: ignore[no-untyped-call]


def _change_constants(model: ir.Model, change: Change) -> int:
    count = 0
    for graph in model.graphs():
        for value in graph.initializers.values():
            if value.const_value is not None and (new := _changed(value.const_value, change)) is not None:
                value.const_value = new
                count += 1
    return count + sum(_change_node(node, change) for node in every_node(model))


def _change_node(node: ir.Node, change: Change) -> int:
    if node.domain or node.op_type not in ("Constant", "ConstantOfShape"):
        return 0
    return sum(_change_attribute(node, attr, change) for attr in list(_stored_attributes(node)))


def _stored_attributes(node: ir.Node) -> Iterator[ir.Attr]:
    kinds = (ir.AttributeType.TENSOR, ir.AttributeType.FLOAT, ir.AttributeType.FLOATS)
    return (attr for attr in node.attributes.values() if attr.type in kinds and not attr.is_ref())


def _change_attribute(node: ir.Node, attr: ir.Attr, change: Change) -> int:
    if attr.type == ir.AttributeType.TENSOR:
        new = _changed(attr.as_tensor(), change)
        if new is not None:
            node.attributes[attr.name] = ir.AttrTensor(attr.name, new)
        return int(new is not None)
    array = change(np.asarray(attr.value, np.float32))
    if array is None:
        return 0
    single = attr.type == ir.AttributeType.FLOAT
    node.attributes[attr.name] = (
        ir.AttrFloat32(attr.name, float(array)) if single else ir.AttrFloat32s(attr.name, array.tolist())
    )
    return 1


def _changed(tensor: ir.TensorProtocol, change: Change) -> ir.TensorProtocol | None:
    floats = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE, ir.DataType.BFLOAT16)
    if tensor.dtype not in floats:
        return None
    array = change(tensor.numpy())
    return None if array is None else ir.tensor(array, name=tensor.name)
