"""Static quantization: ranges from samples, then QuantizeLinear/DequantizeLinear pairs around the operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data import Samples
from modelwright.errors import InputError
from modelwright.stages.quantize._bias import correct_biases, products
from modelwright.stages.quantize._gelu import fuse_gelu
from modelwright.stages.quantize._histogram import histograms, mse_range, percentile_range
from modelwright.stages.quantize._islands import Widths, island_widths
from modelwright.stages.quantize._model import Prepared, opset_of
from modelwright.stages.quantize._neighbours import finest_scales, packing_of
from modelwright.stages.quantize._pairs import integer_nodes, keep_needed_pairs
from modelwright.stages.quantize._params import Calibration, QuantizeParams
from modelwright.stages.quantize._payoff import FloatScope, Parting, faster_in_float
from modelwright.stages.quantize._precision import Step, reduces_range
from modelwright.stages.quantize._quiet import quiet
from modelwright.stages.quantize._ranges import Observed, Range, Watch, observe
from modelwright.stages.quantize._scope import (
    WIDE,
    WORKERS,
    excluded_without_name,
    index_arithmetic,
    other_floats,
    static_operators,
)
from modelwright.stages.quantize._tables import quantize_tables, table_nodes
from modelwright.stages.quantize._tensor_types import element_types, mark_inferred, unmark_inferred
from modelwright.targets import EpAdapter, TensorRule, adapter_of, catalogue
from modelwright.worker import progress

if TYPE_CHECKING:
    import numpy as np
    import onnx
    import onnxruntime.quantization as ortq
    import onnxruntime.quantization.execution_providers.qnn.mixed_precision_overrides_utils as qnn

    from modelwright.stages.quantize import _indexed
else:
    np = lazy("numpy")
    _indexed = lazy("modelwright.stages.quantize._indexed")
    onnx = lazy("onnx")
    ortq = lazy("onnxruntime.quantization")
    qnn = lazy("onnxruntime.quantization.execution_providers.qnn.mixed_precision_overrides_utils")

_NATIVE_WIDE_OPSET = 21
_SUSPICIOUS = 1e6
_ROOM = 1.5
_IN_VAIN = (
    "int8 brings no speed here: no product of this model is large enough for 8 bits to be faster on a CPU without "
    "VNNI, so fp32 is at least as fast; half of it is int8 because that was asked for"
)
_RECURRENT = ("GRU", "LSTM", "RNN")


@dataclass(frozen=True)
class CalibrationSamples:
    """The calibration samples, and whether they were made up."""

    samples: Samples
    random: bool


@dataclass(frozen=True)
class PairScope:
    """The operators that carry pairs, the nodes that do not, and the tensors of another width."""

    operators: tuple[str, ...]
    excluded: set[str]
    between: Widths


@dataclass(frozen=True)
class StaticResult:
    model: onnx.ModelProto
    calibration: Calibration
    warnings: tuple[str, ...]
    pairs_left_out: int
    biases_corrected: int
    kept_float: int
    between: int = 0


def quantize_static(
    prepared: Prepared, step: Step, params: QuantizeParams, source: CalibrationSamples, workdir: Path
) -> StaticResult:
    """Find the ranges with the weights outside of memory, then bring them back and quantize."""
    _check(params)
    if params.scope is not None:
        fuse_gelu(prepared.model)
    operators = static_operators(prepared.model, params, step.activation_bits)
    excluded = set(params.nodes_to_exclude) | set(excluded_without_name(prepared.model, operators))
    excluded |= index_arithmetic(prepared.model) | other_floats(prepared.model, operators)
    tables = table_nodes(prepared.model, excluded, params.op_types)
    excluded |= {table.node for table in tables}
    needed = params.pairs == "needed"
    if needed:
        excluded |= integer_nodes(prepared.model.graph, operators, excluded).idle
    between = island_widths(prepared.model, params, operators, excluded)
    tensors = _watched(prepared.model, operators, excluded)
    if not tensors:
        raise InputError(
            "nothing can be quantized",
            cause=f"no float32 tensor belongs to {', '.join(operators) or 'the chosen operators'}",
            fix="Check op_types and nodes_to_exclude; a float16 model must be quantized from its float32 form.",
        )
    working = {node.name for node in prepared.model.graph.node if node.op_type in operators} - excluded
    corrected = params.bias_correction and params.effort != "fast" and not source.random
    watch = Watch(tensors, products(prepared.model, working) if corrected else ())
    bits = {name: _bits(name, step, params, between) for name in tensors}
    observed, ranges = _ranges(prepared.model, watch, bits, params, source, workdir)
    slow = Parting()
    if needed and params.float_where_faster and not params.op_types:
        slow = faster_in_float(prepared.model.graph, FloatScope(operators, excluded), observed.sizes)
        excluded |= slow.floats
        excluded |= integer_nodes(prepared.model.graph, operators, excluded).idle
    wide = {name: item.largest for name, item in ranges.items() if item.largest > _SUSPICIOUS}
    wide |= _wide_constants(prepared.model)
    left = _touching(prepared.model, operators, excluded, wide)
    excluded |= {node for node, _ in left}
    ranges = {name: item for name, item in ranges.items() if name not in wide}
    progress("quantizing weights")
    prepared.weights.attach(prepared.model)
    integers = integer_nodes(prepared.model.graph, operators, excluded)
    floats = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in _weights_of(prepared.model, observed.means)}
    model = _insert_pairs(prepared.model, step, params, ranges, PairScope(operators, excluded, between))
    left_out = keep_needed_pairs(model, integers) if needed else 0
    biases = correct_biases(model, observed.means, floats)
    quantize_tables(model, tables, step.weight_bits)
    method = params.method if params.method != "percentile" else f"percentile {params.percentile:g}"
    facts = Calibration(
        source.samples.kind, source.random, observed.samples, observed.digest, method, len(observed.ranges)
    )
    warnings = (*_wide_warning(left, wide), *((_IN_VAIN,) if slow.in_vain else ()))
    return StaticResult(model, facts, warnings, left_out, biases, len(slow.floats), between.count)


def _check(params: QuantizeParams) -> None:
    if not 50 < params.percentile <= 100:
        raise InputError(
            f"{params.percentile:g} is not a percentile to calibrate with",
            cause="it is the share of values kept, in percent",
            fix="Give a number above 50 and up to 100, such as 99.99.",
        )


def _watched(model: onnx.ModelProto, operators: tuple[str, ...], excluded: set[str]) -> tuple[str, ...]:
    """Float tensors of the nodes to quantize, in graph order; stored weights have no range to observe."""
    types = element_types(model)
    stored = {tensor.name for tensor in model.graph.initializer}
    found: dict[str, None] = {}
    for node in model.graph.node:
        if node.op_type in operators and node.name not in excluded:
            for name in (*node.input, *node.output):
                if types.get(name) == onnx.TensorProto.FLOAT and name not in stored:
                    found[name] = None
    return tuple(found)


def _ranges(
    model: onnx.ModelProto,
    watch: Watch,
    bits: dict[str, int],
    params: QuantizeParams,
    source: CalibrationSamples,
    workdir: Path,
) -> tuple[Observed, dict[str, Range]]:
    observed = observe(model, watch, source.samples, workdir)
    if params.method == "minmax":
        return observed, _with_room(model, observed.ranges, bits)
    filled = histograms(model, observed, source.samples, workdir)
    infinite = {name: item for name, item in observed.ranges.items() if not item.finite}
    if params.method == "mse":
        searched = {name: mse_range(item, observed.ranges[name], bits[name]) for name, item in filled.items()}
        return observed, infinite | searched
    return observed, infinite | {
        name: percentile_range(item, observed.ranges[name], params.percentile) for name, item in filled.items()
    }


def _with_room(model: onnx.ModelProto, ranges: dict[str, Range], bits: dict[str, int]) -> dict[str, Range]:
    """16 bits have levels to spare: what other samples reach beyond these is not cut off.

    A Clip keeps its range, because the quantizer leaves the clamping to the pair behind it.
    """
    clipped = {node.output[0] for node in model.graph.node if node.op_type == "Clip"}
    room = {name: item for name, item in ranges.items() if bits[name] >= WIDE and item.largest <= _SUSPICIOUS}
    return ranges | {
        name: Range(np.asarray(item.low * _ROOM, item.low.dtype), np.asarray(item.high * _ROOM, item.high.dtype))
        for name, item in room.items()
        if name not in clipped
    }


def _bits(tensor: str, step: Step, params: QuantizeParams, between: Widths) -> int:
    if tensor in between.wide:
        # What a product reads of it has 8 bits, and none to spare.
        return 8 if tensor in between.converted else WIDE
    own = {item.tensor: item.dtype for item in params.overrides}
    return 16 if own.get(tensor, step.activations).endswith("16") else 8


def _weights_of(model: onnx.ModelProto, nodes: Container[str]) -> list[onnx.TensorProto]:
    names = {node.input[1] for node in model.graph.node if node.name in nodes}
    return [tensor for tensor in model.graph.initializer if tensor.name in names]


def _insert_pairs(
    model: onnx.ModelProto,
    step: Step,
    params: QuantizeParams,
    ranges: dict[str, Range],
    scope: PairScope,
) -> onnx.ModelProto:
    overrides = _overrides(model, step, params, scope)
    types = {step.weights, step.activations, *(item.dtype for item in params.overrides)}
    wide = any(item.endswith("16") for item in types) or scope.between.count > 0
    # Before opset 21 ONNX has no 16-bit pairs; onnxruntime and EPs take those of com.microsoft.
    contrib = wide and opset_of(model) < _NATIVE_WIDE_OPSET
    mark_inferred(model)
    with quiet(), _indexed.indexed():
        quantizer = ortq.qdq_quantizer.QDQQuantizer(
            model,
            params.per_channel,
            reduces_range(params),
            _quant_type(step.weights),
            _quant_type(step.activations),
            _tensors_data(ranges),
            [],
            sorted(scope.excluded),
            list(scope.operators),
            {
                "MinimumRealRange": max(adapter.narrowest_range for adapter in _adapters()),
                "ActivationSymmetric": params.symmetric_activations,
                "WeightSymmetric": params.symmetric_weights,
                "TensorQuantOverrides": overrides,
                "UseQDQContribOps": contrib,
            },
        )
        quantized: onnx.ModelProto = quantizer.quantize_model()
    unmark_inferred(quantized)
    return quantized


def _overrides(
    model: onnx.ModelProto, step: Step, params: QuantizeParams, scope: PairScope
) -> dict[str, list[dict[str, Any]]]:
    """The user's types first, then what EPs insist on, where the user said nothing."""
    asked = {item.tensor: [{"quant_type": _quant_type(item.dtype)}] for item in params.overrides}
    asked |= _widths(scope.between, step)
    helper = ortq.tensor_quant_overrides.TensorQuantOverridesHelper(asked)
    if asked and not scope.between.count:
        qnn.MixedPrecisionTensorQuantOverridesFixer.create_from_model(
            helper, model, _quant_type(step.activations)
        ).apply(_quant_type(step.activations), params.symmetric_activations)
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
        for name, channels in _fitting_weights(model, asked_for, params.per_channel):
            found.setdefault(name, channels)
    return found


def _widths(between: Widths, step: Step) -> dict[str, list[dict[str, Any]]]:
    """16 bits beside those of the step, with a conversion for the nodes that read the other width."""
    kinds = {True: _quant_type("uint16"), False: _quant_type(step.activations)}
    found = {name: [{"quant_type": kinds[name in between.wide]}] for name in between.wide | between.converted.keys()}
    for name, readers in between.converted.items():
        found[name][0]["convert"] = {"quant_type": kinds[name not in between.wide], "recv_nodes": set(readers)}
    return found


def _fitting_weights(
    model: onnx.ModelProto, nodes: list[onnx.NodeProto], per_channel: bool
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Of the CPU provider the order of the weights is known; a weight with several readers keeps to 7 bits."""
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    readers = Counter(name for node in model.graph.node for name in node.input)
    least = max(adapter.narrowest_range for adapter in _adapters()) / 254
    for node in nodes:
        tensor = stored.get(node.input[1]) if node.op_type in WORKERS else None
        if tensor is None or readers[tensor.name] > 1 or tensor.data_type != onnx.TensorProto.FLOAT:
            continue
        packing = packing_of(node, len(tensor.dims), tensor.dims[1] if len(tensor.dims) > 1 else 0)
        if packing is None or 0 in tensor.dims:
            continue
        scales = np.maximum(finest_scales(onnx.numpy_helper.to_array(tensor), packing), least).astype(np.float32)
        kind = {"quant_type": _quant_type("int8"), "zero_point": np.array(0, np.int8)}
        if per_channel:
            yield tensor.name, [{**kind, "scale": np.array(scale), "axis": packing.axis} for scale in scales]
        else:
            yield tensor.name, [{**kind, "scale": np.array(scales.max())}]


def _recurrent_weights(stored: set[str], node: onnx.NodeProto, step: Step) -> Iterator[tuple[str, dict[str, Any]]]:
    """The quantizer takes the weights of operators it has no rule for as activations, in their type."""
    if node.op_type in _RECURRENT:
        for name in node.input[1:3]:
            if name in stored:
                yield name, {"quant_type": _quant_type(step.weights), "symmetric": True}


def _required_by_eps(stored: set[str], node: onnx.NodeProto, step: Step) -> Iterator[tuple[str, dict[str, Any]]]:
    for adapter in _adapters():
        for rule in adapter.tensor_rules(node.op_type, step.weights, step.activations):
            name = node.input[1] if rule.tensor == "weight" else node.output[0]
            if rule.tensor == "output" or name in stored:
                yield name, _override(rule)


def _give_scales(found: dict[str, list[dict[str, Any]]], node: onnx.NodeProto, step: Step) -> None:
    """What EPs insist on for 16 bits, where an output was given those among 8."""
    own = found.get(node.output[0], [{}])[0]
    for adapter in _adapters() if own.get("quant_type") == _quant_type("uint16") and "scale" not in own else ():
        for rule in adapter.tensor_rules(node.op_type, step.weights, "uint16"):
            if rule.tensor == "output" and rule.scale is not None:
                own.update(_override(rule))


def _override(rule: TensorRule) -> dict[str, Any]:
    kind = {"quant_type": _quant_type(rule.dtype)}
    if rule.scale is None:
        return {**kind, "symmetric": False}
    zero_point = np.array(rule.zero_point, dtype=rule.dtype)
    return {**kind, "scale": np.array(rule.scale, dtype=np.float32), "zero_point": zero_point}


def _adapters() -> list[EpAdapter]:
    return [adapter_of(ep.key) for ep in catalogue().eps]


def _tensors_data(ranges: dict[str, Range]) -> Any:
    data = {name: (item.low, item.high) for name, item in ranges.items()}
    return ortq.calibrate.TensorsData(ortq.CalibrationMethod.MinMax, data)


def _quant_type(dtype: str) -> Any:
    return {
        "int8": ortq.QuantType.QInt8,
        "uint8": ortq.QuantType.QUInt8,
        "int16": ortq.QuantType.QInt16,
        "uint16": ortq.QuantType.QUInt16,
    }[dtype]


def _wide_constants(model: onnx.ModelProto) -> dict[str, float]:
    """Small stored tensors such as the -3.4e38 of an attention mask. Large ones are weights, and in a file."""
    found = {}
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.data_location != onnx.TensorProto.EXTERNAL:
            values = onnx.numpy_helper.to_array(tensor)
            largest = float(np.abs(values).max()) if values.size else 0.0
            if largest > _SUSPICIOUS:
                found[tensor.name] = largest
    return found


def _touching(
    model: onnx.ModelProto, operators: tuple[str, ...], excluded: set[str], wide: dict[str, float]
) -> list[tuple[str, str]]:
    """Nodes that would be quantized, and the tensor in them that cannot be."""
    found = []
    for node in model.graph.node:
        tensor = next((name for name in (*node.input, *node.output) if name in wide), None)
        if tensor is not None and node.op_type in operators and node.name not in excluded:
            found.append((node.name, tensor))
    return found


def _wide_warning(left: list[tuple[str, str]], wide: dict[str, float]) -> tuple[str, ...]:
    if not left:
        return ()
    shown = ", ".join(f"{node} ({tensor} reaches {_reach(wide[tensor])})" for node, tensor in left[:3])
    return (
        f"{len(left)} nodes stay float, because one scale for such a range would erase every other value: {shown}; "
        "clamp these values with the optimize stage to quantize the nodes too",
    )


def _reach(largest: float) -> str:
    return f"{largest:.1e}" if np.isfinite(largest) else "infinity"
