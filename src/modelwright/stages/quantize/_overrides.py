"""Types and scales of single tensors, as the quantizer takes them: the user's, the widths', and what EPs insist on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.stages.quantize._islands import Widths
from modelwright.stages.quantize._neighbours import finest_scales, packing_of
from modelwright.stages.quantize._params import QuantizeParams
from modelwright.stages.quantize._precision import Step, reduces_range
from modelwright.stages.quantize._scope import WORKERS
from modelwright.stages.quantize._weights import Detached
from modelwright.targets import EpAdapter, TensorRule, adapter_of, catalogue

if TYPE_CHECKING:
    import numpy as np
    import onnx
    import onnxruntime.quantization as ortq
    import onnxruntime.quantization.execution_providers.qnn.mixed_precision_overrides_utils as qnn
else:
    np = lazy("numpy")
    onnx = lazy("onnx")
    ortq = lazy("onnxruntime.quantization")
    qnn = lazy("onnxruntime.quantization.execution_providers.qnn.mixed_precision_overrides_utils")

_RECURRENT = ("GRU", "LSTM", "RNN")


@dataclass(frozen=True)
class PairScope:
    """The operators that carry pairs, the nodes that do not, and the tensors of another width."""

    operators: tuple[str, ...]
    excluded: set[str]
    between: Widths


def tensor_overrides(
    model: onnx.ModelProto, step: Step, params: QuantizeParams, scope: PairScope, weights: Detached
) -> dict[str, list[dict[str, Any]]]:
    """The user's types first, then what EPs insist on, where the user said nothing."""
    asked = {item.tensor: [{"quant_type": quant_type(item.dtype)}] for item in params.overrides}
    asked |= _widths(scope.between, step)
    helper = ortq.tensor_quant_overrides.TensorQuantOverridesHelper(asked)
    if asked and not scope.between.count:
        qnn.MixedPrecisionTensorQuantOverridesFixer.create_from_model(
            helper, model, quant_type(step.activations)
        ).apply(quant_type(step.activations), params.symmetric_activations)
    found: dict[str, list[dict[str, Any]]] = dict(helper.get_dict())
    stored = {tensor.name for tensor in model.graph.initializer}
    asked_for = [
        node for node in model.graph.node if node.op_type in scope.operators and node.name not in scope.excluded
    ]
    for node in asked_for:
        for name, override in (*_required_by_eps(stored, node, step), *_recurrent_weights(stored, node, step)):
            found.setdefault(name, [override])
        _give_scales(found, node, step)
    if params.pairs == "needed" and reduces_range(params) and (step.weights, step.activations) == ("int8", "uint8"):
        for name, channels in _fitting_weights(model, asked_for, params.per_channel, weights):
            found.setdefault(name, channels)
    return found


def _widths(between: Widths, step: Step) -> dict[str, list[dict[str, Any]]]:
    """16 bits beside those of the step, with a conversion for the nodes that read the other width."""
    kinds = {True: quant_type("uint16"), False: quant_type(step.activations)}
    found = {name: [{"quant_type": kinds[name in between.wide]}] for name in between.wide | between.converted.keys()}
    for name, readers in between.converted.items():
        found[name][0]["convert"] = {"quant_type": kinds[name not in between.wide], "recv_nodes": set(readers)}
    return found


def _fitting_weights(
    model: onnx.ModelProto, nodes: list[onnx.NodeProto], per_channel: bool, weights: Detached
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Of the CPU provider the order of the weights is known; a weight with several readers keeps to 7 bits."""
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    readers = Counter(name for node in model.graph.node for name in node.input)
    least = max(adapter.narrowest_range for adapter in adapters()) / 254
    for node in nodes:
        tensor = stored.get(node.input[1]) if node.op_type in WORKERS else None
        if tensor is None or readers[tensor.name] > 1 or tensor.data_type != onnx.TensorProto.FLOAT:
            continue
        packing = packing_of(node, len(tensor.dims), tensor.dims[1] if len(tensor.dims) > 1 else 0)
        if packing is None or 0 in tensor.dims:
            continue
        scales = np.maximum(finest_scales(weights.values(tensor), packing), least).astype(np.float32)
        kind = {"quant_type": quant_type("int8"), "zero_point": np.array(0, np.int8)}
        if per_channel:
            yield tensor.name, [{**kind, "scale": np.array(scale), "axis": packing.axis} for scale in scales]
        else:
            yield tensor.name, [{**kind, "scale": np.array(scales.max())}]


def _recurrent_weights(stored: set[str], node: onnx.NodeProto, step: Step) -> Iterator[tuple[str, dict[str, Any]]]:
    """The quantizer takes the weights of operators it has no rule for as activations, in their type."""
    if node.op_type in _RECURRENT:
        for name in node.input[1:3]:
            if name in stored:
                yield name, {"quant_type": quant_type(step.weights), "symmetric": True}


def _required_by_eps(stored: set[str], node: onnx.NodeProto, step: Step) -> Iterator[tuple[str, dict[str, Any]]]:
    for adapter in adapters():
        for rule in adapter.tensor_rules(node.op_type, step.weights, step.activations):
            name = node.input[1] if rule.tensor == "weight" else node.output[0]
            if rule.tensor == "output" or name in stored:
                yield name, _override(rule)


def _give_scales(found: dict[str, list[dict[str, Any]]], node: onnx.NodeProto, step: Step) -> None:
    """What EPs insist on for 16 bits, where an output was given those among 8."""
    own = found.get(node.output[0], [{}])[0]
    for adapter in adapters() if own.get("quant_type") == quant_type("uint16") and "scale" not in own else ():
        for rule in adapter.tensor_rules(node.op_type, step.weights, "uint16"):
            if rule.tensor == "output" and rule.scale is not None:
                own.update(_override(rule))


def _override(rule: TensorRule) -> dict[str, Any]:
    kind = {"quant_type": quant_type(rule.dtype)}
    if rule.scale is None:
        return {**kind, "symmetric": False}
    zero_point = np.array(rule.zero_point, dtype=rule.dtype)
    return {**kind, "scale": np.array(rule.scale, dtype=np.float32), "zero_point": zero_point}


def adapters() -> list[EpAdapter]:
    return [adapter_of(ep.key) for ep in catalogue().eps]


def quant_type(dtype: str) -> Any:
    return {
        "int8": ortq.QuantType.QInt8,
        "uint8": ortq.QuantType.QUInt8,
        "int16": ortq.QuantType.QInt16,
        "uint16": ortq.QuantType.QUInt16,
    }[dtype]
