"""Fused operators of the CPU EP, back to the standard operators they stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.stages.optimize._inventory import every_node

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir
else:
    np = lazy("numpy")
    ir = lazy("onnx_ir")

_CONTRIB = "com.microsoft"
_FIRST_OPSET_WITH_CLIP_INPUTS = 11
# FusedConv keeps the parameters of its activation in one list, in this order.
_CONV_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
    "LeakyRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "Clip": ("min", "max"),
}

Nodes = list["ir.Node"]


def unfuse_conv(model: ir.Model) -> int:
    """FusedConv(x, w, b, z) = activation(Conv(x, w, b) + z)."""
    opset = model.opset_imports.get("", 1)
    return _replace_all(model, "FusedConv", lambda node: _conv(node, opset))


def unfuse_gemm(model: ir.Model) -> int:
    """FusedGemm(a, b, c) = activation(Gemm(a, b, c))."""
    return _replace_all(model, "FusedGemm", _gemm)


def unfuse_matmul(model: ir.Model) -> int:
    """FusedMatMul(a, b) = alpha * MatMul(transposed a, transposed b); the ranks have to be known."""
    return _replace_all(model, "FusedMatMul", _matmul)


def _replace_all(model: ir.Model, op_type: str, parts: Callable[[ir.Node], Nodes | None]) -> int:
    count = 0
    for node in list(every_node(model)):
        if node.domain != _CONTRIB or node.op_type != op_type:
            continue
        new = parts(node)
        if new is not None:
            replace_node(node, new)
            count += 1
    return count


def replace_node(node: ir.Node, new: Sequence[ir.Node]) -> None:
    """Put `new` in the place of `node`; the last of them takes over its first output."""
    for index, part in enumerate(new):
        part.name = f"{node.name or node.op_type}_{index}_{part.op_type}"
        for output in part.outputs:
            output.name = f"{node.outputs[0].name}_{index}_{part.op_type}"
    owner = node.graph
    if owner is None:
        raise ValueError("a node outside any graph cannot be replaced")
    ir.convenience.replace_nodes_and_values(owner, node, [node], list(new), [node.outputs[0]], [new[-1].outputs[0]])


def constant(name: str, array: np.ndarray) -> ir.Node:
    return ir.node("Constant", [], {"value": ir.tensor(array, name=name)})


def _conv(node: ir.Node, opset: int) -> Nodes | None:
    inputs = [*node.inputs, None, None][:4]
    kept = {name: value for name, value in node.attributes.items() if not name.startswith("activation")}
    bias = [inputs[2]] if inputs[2] is not None else []
    nodes = [ir.Node("", "Conv", [*inputs[:2], *bias], list(kept.values()))]
    if inputs[3] is not None:
        nodes.append(ir.node("Add", [nodes[-1].outputs[0], inputs[3]]))
    activation = node.attributes.get_string("activation", "")
    if not activation:
        return nodes
    if activation not in _CONV_PARAMETERS:
        return None
    values = node.attributes.get_floats("activation_params", ())
    parameters = dict(zip(_CONV_PARAMETERS[activation], values, strict=False))
    return [*nodes, *_activation(activation, parameters, nodes[-1].outputs[0], opset)]


def _activation(name: str, parameters: Mapping[str, float], value: ir.Value, opset: int) -> Nodes:
    if name != "Clip" or opset < _FIRST_OPSET_WITH_CLIP_INPUTS:
        return [ir.node(name, [value], dict(parameters))]
    bounds = [constant(key, np.array(parameters[key], np.float32)) for key in ("min", "max")]
    return [*bounds, ir.node("Clip", [value, *(bound.outputs[0] for bound in bounds)])]


def _gemm(node: ir.Node) -> Nodes | None:
    activation = node.attributes.get_string("activation", "")
    own = [attr for name, attr in node.attributes.items() if not name.startswith("activation")]
    gemm = ir.Node("", "Gemm", list(node.inputs), own)
    if not activation:
        return [gemm]
    prefix = "activation_"
    parameters = {
        name.removeprefix(prefix): attr.as_float() for name, attr in node.attributes.items() if name.startswith(prefix)
    }
    return [gemm, ir.node(activation, [gemm.outputs[0]], parameters)]


def _matmul(node: ir.Node) -> Nodes | None:
    attributes = node.attributes
    if attributes.get_int("transBatchA", 0) or attributes.get_int("transBatchB", 0):
        return None
    nodes: Nodes = []
    operands: list[ir.Value] = []
    for value, flag in zip(node.inputs, ("transA", "transB"), strict=True):
        if value is None:
            return None
        if attributes.get_int(flag, 0):
            if value.shape is None:
                return None
            nodes.append(ir.node("Transpose", [value], {"perm": _swap_last(len(value.shape))}))
            value = nodes[-1].outputs[0]
        operands.append(value)
    nodes.append(ir.node("MatMul", operands))
    alpha = attributes.get_float("alpha", 1.0)
    if alpha != 1.0:
        scale = constant("alpha", np.array(alpha, _numpy_type(node)))
        nodes += [scale, ir.node("Mul", [nodes[-1].outputs[0], scale.outputs[0]])]
    return nodes


def _swap_last(rank: int) -> list[int]:
    # FusedMatMul ignores the flag for vectors.
    order = list(range(rank))
    return order if rank < 2 else [*order[:-2], order[-1], order[-2]]


def _numpy_type(node: ir.Node) -> np.dtype:
    for value in (*node.outputs, *node.inputs):
        if value is not None and value.dtype is not None:
            return value.dtype.numpy()
    return np.dtype(np.float32)
