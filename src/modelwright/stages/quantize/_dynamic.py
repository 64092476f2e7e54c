"""Dynamic int8: stored 8-bit weights, activations quantized while the model runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.stages.quantize._params import ALL_OPERATORS, QuantizeParams
from modelwright.stages.quantize._precision import reduces_range
from modelwright.stages.quantize._quiet import quiet
from modelwright.stages.quantize._tensor_types import mark_inferred, unmark_inferred

if TYPE_CHECKING:
    import onnx
    import onnxruntime.quantization as ortq
else:
    onnx = lazy("onnx")
    ortq = lazy("onnxruntime.quantization")

# Conv is missing on purpose: onnxruntime's ConvInteger is slower than its float Conv.
_DEFAULT = ("Attention", "EmbedLayerNormalization", "Gather", "LSTM", "MatMul")


def quantize_dynamic(model: onnx.ModelProto, params: QuantizeParams) -> onnx.ModelProto:
    """Integer operators in place of the float ones. Gemm is rewritten to MatMul first."""
    if params.overrides:
        raise InputError(
            "dynamic quantization takes no per-tensor types",
            cause="its activations have no stored type",
            fix="Use a static precision, or leave the overrides out.",
        )
    mark_inferred(model)
    operators = _operators(params)
    # ConvInteger takes unsigned weights only.
    weights = ortq.QuantType.QUInt8 if "Conv" in operators else ortq.QuantType.QInt8
    with quiet():
        quantizer = ortq.onnx_quantizer.ONNXQuantizer(
            model,
            params.per_channel,
            reduces_range(params),
            ortq.QuantizationMode.IntegerOps,
            False,
            weights,
            ortq.QuantType.QUInt8,
            None,
            [],
            list(params.nodes_to_exclude),
            operators,
            {"MatMulConstBOnly": True, "WeightSymmetric": params.symmetric_weights or params.per_channel},
        )
        quantized: onnx.ModelProto = quantizer.quantize_model()
    unmark_inferred(quantized)
    return quantized


def _operators(params: QuantizeParams) -> list[str]:
    if not params.op_types:
        return list(_DEFAULT)
    if params.op_types == (ALL_OPERATORS,):
        return [*_DEFAULT, "Conv"]
    return list(params.op_types)
