"""Tidying without onnxruntime: nothing is inlined, specialised or renamed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.stages.optimize._inventory import every_node
from modelwright.stages.optimize._surgery import bypass, needs_own_producer
from modelwright.stages.optimize._tied import tie_transposed

if TYPE_CHECKING:
    import onnx_ir as ir
    import onnx_ir.passes.common as common
else:
    ir = lazy("onnx_ir")
    common = lazy("onnx_ir.passes.common")

_FIRST_OPSET_WITH_TRAINING_INPUT = 12
# Enough of a tensor to tell most pairs apart without reading the rest.
_HEAD = 512


def remove_identity(model: ir.Model) -> int:
    """Identity nodes that give an output its own name stay: both names are part of an interface."""
    count = 0
    for node in list(every_node(model)):
        source = node.inputs[0] if node.op_type == "Identity" and not node.domain else None
        if source is not None and not needs_own_producer(node, source):
            bypass(node, source)
            count += 1
    return count


def remove_dropout(model: ir.Model) -> int:
    """Dropout in inference mode copies its input. One whose mask is read stays."""
    count = 0
    for node in list(every_node(model)):
        if node.op_type == "Dropout" and not node.domain and _passes_through(node, model):
            source = node.inputs[0]
            if source is not None:
                bypass(node, source)
                count += 1
    return count


def lift_constants(model: ir.Model) -> int:
    """Constant nodes become initializers."""
    return _lost_nodes(model, common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0))


def dedupe_initializers(model: ir.Model) -> int:
    """Initializers with equal type, shape and content become one, turned ones too; how many went."""
    return sum(_dedupe(graph) for graph in model.graphs()) + tie_transposed(model)


def remove_unused(model: ir.Model) -> int:
    """Nodes, initializers, functions and opset imports without a reader; how many went."""
    before = _parts(model)
    common.RemoveUnusedNodesPass()(model)
    common.RemoveUnusedFunctionsPass()(model)  # type: ignore[no-untyped-call]
    common.RemoveUnusedOpsetsPass()(model)
    return before - _parts(model)


def _dedupe(graph: ir.Graph) -> int:
    seen: dict[tuple[object, ...], list[ir.Value]] = {}
    count = 0
    for name, value in list(graph.initializers.items()):
        tensor = value.const_value
        if tensor is None or tensor.dtype == ir.DataType.STRING or value.is_graph_input():
            continue
        array = tensor.numpy()
        alike = seen.setdefault((tensor.dtype, array.shape, array.reshape(-1)[:_HEAD].tobytes()), [])
        twin = next((other for other in alike if _equal(other, tensor)), None)
        if twin is None or value.is_graph_output():
            alike.append(value)
            continue
        value.replace_all_uses_with(twin)
        del graph.initializers[name]
        count += 1
    return count


def _equal(value: ir.Value, tensor: ir.TensorProtocol) -> bool:
    """Bit by bit: -0.0 is not 0.0, and NaN is NaN."""
    return value.const_value is not None and value.const_value.tobytes() == tensor.tobytes()


def _passes_through(node: ir.Node, model: ir.Model) -> bool:
    if any(output.uses() or output.is_graph_output() for output in node.outputs[1:]):
        return False
    if model.opset_imports.get("", 1) < _FIRST_OPSET_WITH_TRAINING_INPUT:
        return True
    mode = node.inputs[2] if len(node.inputs) > 2 else None
    if mode is None:
        return True
    tensor = ir.convenience.get_const_tensor(mode)
    return tensor is not None and not tensor.numpy().any()


def _lost_nodes(model: ir.Model, tidy: ir.passes.PassBase) -> int:
    before = sum(1 for _ in every_node(model))
    tidy(model)
    return before - sum(1 for _ in every_node(model))


def _initializers(model: ir.Model) -> int:
    return sum(len(graph.initializers) for graph in model.graphs())


def _parts(model: ir.Model) -> int:
    nodes = sum(1 for _ in every_node(model))
    return nodes + _initializers(model) + len(model.functions) + len(model.opset_imports)
