"""Swish on few channels, for compilers that get it wrong."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.stages.optimize._inventory import every_node
from modelwright.stages.optimize._shapes import learn_shapes, static_shape
from modelwright.stages.optimize._unfuse import constant

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir
else:
    np = lazy("numpy")
    ir = lazy("onnx_ir")

# Asked of QNN's compiler: up to 32 channels are wrong, 33 are right.
_NARROW = 32
_RANK = 3
# Between a normalization and the Swish behind it.
_BETWEEN = frozenset({"Add", "Gemm", "MatMul", "Reshape"})


def swish_in_one_batch(model: ir.Model) -> int:
    """x·Sigmoid(x) behind a LayerNormalization, on no more than 32 channels of several batches, as one batch.

    Of several QNN's compiler makes something else in 16 bits (`tests/ep/quantize/test_npu_faults.py`).
    """
    products = [node for node in every_node(model) if node.op_type == "Mul" and not node.domain]
    found = {node: source for node in products if (source := _swished(node)) is not None and _normalized(source)}
    learn_shapes(model, list(found.values()))
    return sum(_flatten(node, source) for node, source in found.items())


def _flatten(product: ir.Node, source: ir.Value) -> int:
    dims, owner = static_shape(source), product.graph
    if owner is None or dims is None or not _wrong(dims):
        return 0
    name = product.outputs[0].name
    flat = _reshaped(source, [1, math.prod(dims[:-1]), dims[-1]], f"{name}_flat")
    gate = _named(ir.node("Sigmoid", [flat[-1].outputs[0]]), f"{name}_gate")
    gated = _named(ir.node("Mul", [flat[-1].outputs[0], gate.outputs[0]]), f"{name}_gated")
    back = _reshaped(gated.outputs[0], dims, f"{name}_back")
    result = back[-1].outputs[0]
    result.shape, result.type = ir.Shape(dims), source.type
    ir.convenience.replace_nodes_and_values(
        owner, product, [product], [*flat, gate, gated, *back], list(product.outputs), [result]
    )
    return 1


def _swished(product: ir.Node) -> ir.Value | None:
    """What is multiplied with its own Sigmoid."""
    first, second = product.inputs
    for source, gate in ((first, second), (second, first)):
        node = None if gate is None else gate.producer()
        if node is not None and node.op_type == "Sigmoid" and not node.domain and node.inputs[0] is source:
            return source
    return None


def _wrong(dims: list[int]) -> bool:
    return len(dims) >= _RANK and dims[-1] <= _NARROW and math.prod(dims[:-2]) > 1


def _normalized(value: ir.Value) -> bool:
    node = value.producer()
    while node is not None and node.op_type in _BETWEEN and not node.domain:
        node = next((found for one in node.inputs if one is not None and (found := one.producer())), None)
    return node is not None and node.op_type == "LayerNormalization"


def _reshaped(source: ir.Value, dims: list[int], name: str) -> list[ir.Node]:
    shape = _named(constant("shape", np.array(dims, np.int64)), f"{name}_shape")
    return [shape, _named(ir.node("Reshape", [source, shape.outputs[0]]), name)]


def _named(node: ir.Node, name: str) -> ir.Node:
    node.name, node.outputs[0].name = f"{name}_node", name
    return node
