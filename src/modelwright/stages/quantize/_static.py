"""Static quantization: ranges from samples, then QuantizeLinear/DequantizeLinear pairs around the operators."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data import Samples
from modelwright.errors import InputError
from modelwright.graph import StreamedWeight
from modelwright.stages.quantize._bias import correct_biases, products
from modelwright.stages.quantize._gelu import fuse_gelu
from modelwright.stages.quantize._histogram import histograms, mse_range, percentile_range
from modelwright.stages.quantize._islands import Widths, island_widths
from modelwright.stages.quantize._model import Prepared, copied, opset_of
from modelwright.stages.quantize._moments import learn, readings
from modelwright.stages.quantize._overrides import PairScope, adapters, quant_type, tensor_overrides
from modelwright.stages.quantize._pairs import integer_nodes, keep_needed_pairs
from modelwright.stages.quantize._params import Calibration, QuantizeParams
from modelwright.stages.quantize._payoff import FloatScope, Parting, faster_in_float
from modelwright.stages.quantize._precision import Step, reduces_range
from modelwright.stages.quantize._quiet import quiet
from modelwright.stages.quantize._ranges import Observed, Range, Watch, observe, widened
from modelwright.stages.quantize._rounded import FloatWeights, round_weights
from modelwright.stages.quantize._scope import (
    WIDE,
    excluded_without_name,
    index_arithmetic,
    other_floats,
    static_operators,
)
from modelwright.stages.quantize._tables import quantize_tables, table_nodes
from modelwright.stages.quantize._tensor_types import element_types, mark_inferred, unmark_inferred
from modelwright.worker import progress

if TYPE_CHECKING:
    import numpy as np
    import onnx
    import onnxruntime.quantization as ortq
    import onnxruntime.quantization.execution_providers.qnn.mixed_precision_overrides_utils as qnn

    from modelwright.stages.quantize import _indexed, _outside
else:
    np = lazy("numpy")
    _indexed = lazy("modelwright.stages.quantize._indexed")
    _outside = lazy("modelwright.stages.quantize._outside")
    onnx = lazy("onnx")
    ortq = lazy("onnxruntime.quantization")
    qnn = lazy("onnxruntime.quantization.execution_providers.qnn.mixed_precision_overrides_utils")

_NATIVE_WIDE_OPSET = 21
_SUSPICIOUS = 1e6
_ROOM = 1.5
_IN_VAIN = (
    "int8 brings no speed here: on a CPU without VNNI the products of this model, with the conversions around them, "
    "are estimated to take longer in 8 bits than in fp32; what is int8 is so because that was asked for"
)


@dataclass(frozen=True)
class CalibrationSamples:
    """The calibration samples, and whether they were made up."""

    samples: Samples
    random: bool


@dataclass(frozen=True)
class StaticResult:
    model: onnx.ModelProto
    calibration: Calibration
    warnings: tuple[str, ...]
    pairs_left_out: int
    biases_corrected: int
    kept_float: int
    between: int = 0
    rounded: int = 0
    weights: Mapping[str, StreamedWeight] = field(default_factory=dict)


def quantize_static(
    prepared: Prepared,
    step: Step,
    params: QuantizeParams,
    source: CalibrationSamples,
    workdir: Path,
    *,
    compensate: bool = False,
    to_write: bool = False,
) -> StaticResult:
    """Find the ranges and quantize, with large weights outside of memory.

    `compensate` rounds weights so that each product loses less, by what it reads of the samples. A model that is only
    `to_write` has its large weights beside it in the end.
    """
    _check(params)
    # Of an NPU: what carries pairs itself is no longer the pattern that an EP knows.
    if params.scope is not None or (step.activation_bits >= WIDE and not params.op_types):
        fuse_gelu(prepared.model, {*params.nodes_to_exclude, *(item.tensor for item in params.overrides)})
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
        raise _nothing_to_quantize(prepared.model, operators)
    working = {node.name for node in prepared.model.graph.node if node.op_type in operators} - excluded
    corrected = params.bias_correction and params.effort != "fast" and not source.random
    watch = Watch(tensors, products(prepared.model, working) if corrected else ())
    bits = {name: _bits(name, step, params, between) for name in tensors}
    observed, ranges = _ranges(prepared.model, watch, bits, params, source, workdir)
    ranges |= widened(prepared.model, _of_16_bits(ranges, bits), _narrowest_inputs())
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
    rounding = readings(prepared.model, working - excluded) if compensate else ()
    bare = copied(prepared.model) if rounding else None
    outside = prepared.weights.to_write() if to_write else prepared.weights
    outside.attach(prepared.model)
    integers = integer_nodes(prepared.model.graph, operators, excluded)
    kept = {*observed.means, *(item.node for item in rounding)}
    floats = {tensor.name: outside.values(tensor) for tensor in _weights_of(prepared.model, kept)}
    model = _insert_pairs(
        replace(prepared, weights=outside), step, params, ranges, PairScope(operators, excluded, between)
    )
    left_out = keep_needed_pairs(model, integers) if needed else 0
    rounded = 0
    if bare is not None:
        weights = FloatWeights(floats, frozenset(observed.means), reduces_range(params))
        rounded = round_weights(model, learn(bare, rounding, source.samples, workdir), weights)
    biases = correct_biases(model, observed.means, floats, outside.values)
    quantize_tables(model, tables, step.weight_bits, outside)
    method = params.method if params.method != "percentile" else f"percentile {params.percentile:g}"
    facts = Calibration(
        source.samples.kind, source.random, observed.samples, observed.digest, method, len(observed.ranges)
    )
    warnings = (*_wide_warning(left, wide), *((_IN_VAIN,) if slow.in_vain else ()))
    counts = left_out, biases, len(slow.floats), between.count, rounded
    return StaticResult(model, facts, warnings, *counts, outside.streamed(model))


def _check(params: QuantizeParams) -> None:
    if not 50 < params.percentile <= 100:
        raise InputError(
            f"{params.percentile:g} is not a percentile to calibrate with",
            cause="it is the share of values kept, in percent",
            fix="Give a number above 50 and up to 100, such as 99.99.",
        )


def _nothing_to_quantize(model: onnx.ModelProto, operators: tuple[str, ...]) -> InputError:
    """Where its operators would do and all of them were left out, they gain nothing by themselves."""
    problem, idle = "nothing can be quantized", _operators_with_floats(model, operators)
    if not idle:
        return InputError(
            problem,
            cause=f"no float32 tensor belongs to {', '.join(operators) or 'the chosen operators'}",
            fix="Check op_types and nodes_to_exclude; a float16 model must be quantized from its float32 form.",
        )
    tensors = (tensor for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT)
    weights = {tensor.name for tensor in tensors if len(tensor.dims) > 1}
    weighty = sorted({node.op_type for node in model.graph.node if weights & set(node.input)} - set(idle))
    beside = f"; its weights belong to {', '.join(weighty)}, which stay float" if weighty else ""
    return InputError(
        problem,
        cause=f"of its operators only {', '.join(idle)} could be, and they gain nothing without a product{beside}",
        fix="Keep the model in float: fp16 makes it smaller.",
    )


def _operators_with_floats(model: onnx.ModelProto, operators: tuple[str, ...]) -> list[str]:
    named = set(_watched(model, operators, set()))
    return sorted({node.op_type for node in model.graph.node if node.op_type in operators and named & set(node.input)})


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


def _of_16_bits(ranges: dict[str, Range], bits: dict[str, int]) -> dict[str, Range]:
    return {name: item for name, item in ranges.items() if bits[name] >= WIDE}


def _narrowest_inputs() -> dict[str, float]:
    """For all EPs, so that targets share what is quantized."""
    found: dict[str, float] = {}
    for adapter in adapters():
        found |= {kind: max(least, found.get(kind, 0)) for kind, least in adapter.narrowest_inputs.items()}
    return found


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
    prepared: Prepared,
    step: Step,
    params: QuantizeParams,
    ranges: dict[str, Range],
    scope: PairScope,
) -> onnx.ModelProto:
    model = prepared.model
    overrides = tensor_overrides(model, step, params, scope, prepared.weights)
    types = {step.weights, step.activations, *(item.dtype for item in params.overrides)}
    wide = any(item.endswith("16") for item in types) or scope.between.count > 0
    # Before opset 21 ONNX has no 16-bit pairs; onnxruntime and EPs take those of com.microsoft.
    contrib = wide and opset_of(model) < _NATIVE_WIDE_OPSET
    mark_inferred(model)
    with quiet(), _indexed.indexed(), _outside.outside(prepared.weights):
        quantizer = ortq.qdq_quantizer.QDQQuantizer(
            model,
            params.per_channel,
            reduces_range(params),
            quant_type(step.weights),
            quant_type(step.activations),
            _tensors_data(ranges),
            [],
            sorted(scope.excluded),
            list(scope.operators),
            {
                "MinimumRealRange": max(adapter.narrowest_range for adapter in adapters()),
                "ActivationSymmetric": params.symmetric_activations,
                "WeightSymmetric": params.symmetric_weights,
                "TensorQuantOverrides": overrides,
                "UseQDQContribOps": contrib,
            },
        )
        quantized: onnx.ModelProto = quantizer.quantize_model()
    unmark_inferred(quantized)
    return quantized


def _tensors_data(ranges: dict[str, Range]) -> Any:
    data = {name: (item.low, item.high) for name, item in ranges.items()}
    return ortq.calibrate.TensorsData(ortq.CalibrationMethod.MinMax, data)


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
