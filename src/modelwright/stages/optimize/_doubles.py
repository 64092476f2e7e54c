"""Double precision inside a model: chips compute no doubles, and some EPs claim them all the same and then fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.stages.optimize._inventory import every_node
from modelwright.stages.optimize._surgery import bypass

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir
else:
    np = lazy("numpy")
    ir = lazy("onnx_ir")

# The attributes by which an operator says the type of what it makes.
_TYPED = ("to", "dtype")


def narrow_doubles(model: ir.Model) -> int:
    """Compute in float32 what is computed in double; inputs and outputs keep their type. The number of values."""
    values = [value for value in _values(model) if value.dtype == ir.DataType.DOUBLE]
    if not values or model.functions or not _bearable(model):
        return 0
    given = [value for value in model.graph.inputs if value.dtype == ir.DataType.DOUBLE]
    answers = [place for place, value in enumerate(model.graph.outputs) if value.dtype == ir.DataType.DOUBLE]
    for value in values:
        value.dtype = ir.DataType.FLOAT
        if value.const_value is not None:
            value.const_value = _narrow(value.const_value)
    for node in list(every_node(model)):
        _retype(node)
    for value in given:
        _take_double(model.graph, value)
    for place in answers:
        _give_double(model.graph, place)
    for node in [node for node in every_node(model) if _says_nothing(node)]:
        assert node.inputs[0] is not None
        bypass(node, node.inputs[0])
    return len(values)


def _values(model: ir.Model) -> Iterator[ir.Value]:
    for graph in model.graphs():
        yield from graph.inputs
        yield from (value for value in graph.initializers.values() if value not in graph.inputs)
    for node in every_node(model):
        yield from node.outputs


def _bearable(model: ir.Model) -> bool:
    """No operator of another domain reads or writes doubles, and every constant is in the range of a float."""
    stored = [value.const_value for graph in model.graphs() for value in graph.initializers.values()]
    for node in every_node(model):
        stored += [attr.as_tensor() for attr in node.attributes.values() if attr.type == ir.AttributeType.TENSOR]
        touched = (*(value for value in node.inputs if value is not None), *node.outputs)
        if node.domain and any(value.dtype == ir.DataType.DOUBLE for value in touched):
            return False
    doubles = [tensor.numpy() for tensor in stored if tensor is not None and tensor.dtype == ir.DataType.DOUBLE]
    limit = np.finfo(np.float32).max
    return not any((np.isfinite(array) & (np.abs(array) > limit)).any() for array in doubles)


def _narrow(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    return ir.Tensor(tensor.numpy().astype(np.float32), name=tensor.name)


def _retype(node: ir.Node) -> None:
    for attr in list(node.attributes.values()):
        if attr.type == ir.AttributeType.TENSOR and attr.as_tensor().dtype == ir.DataType.DOUBLE:
            node.attributes[attr.name] = ir.AttrTensor(attr.name, _narrow(attr.as_tensor()))
        elif attr.name in _TYPED and attr.type == ir.AttributeType.INT and attr.as_int() == ir.DataType.DOUBLE:
            node.attributes[attr.name] = ir.AttrInt64(attr.name, int(ir.DataType.FLOAT))


def _take_double(graph: ir.Graph, value: ir.Value) -> None:
    value.dtype = ir.DataType.DOUBLE
    cast = ir.node("Cast", [value], {"to": int(ir.DataType.FLOAT)}, name=f"{value.name}/narrow")
    cast.outputs[0].name, cast.outputs[0].dtype, cast.outputs[0].shape = (
        f"{value.name}/float",
        ir.DataType.FLOAT,
        value.shape,
    )
    ir.convenience.replace_all_uses_with(value, cast.outputs[0])
    cast.replace_input_with(0, value)
    graph.insert_before(graph[0], cast)


def _give_double(graph: ir.Graph, place: int) -> None:
    value = graph.outputs[place]
    cast = ir.node("Cast", [value], {"to": int(ir.DataType.DOUBLE)}, name=f"{value.name}/widen")
    answer = cast.outputs[0]
    answer.name, answer.dtype, answer.shape = value.name, ir.DataType.DOUBLE, value.shape
    value.name = f"{value.name}/float"
    graph.append(cast)
    graph.outputs[place] = answer


def _says_nothing(node: ir.Node) -> bool:
    """A Cast of floats to floats."""
    if node.op_type != "Cast" or node.domain or node.inputs[0] is None:
        return False
    return node.attributes["to"].as_int() == ir.DataType.FLOAT == node.inputs[0].dtype
