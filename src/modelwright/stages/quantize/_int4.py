"""4-bit weights in blocks: MatMul becomes MatMulNBits, activations stay float."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.stages.quantize._params import QuantizeParams
from modelwright.stages.quantize._quiet import quiet

if TYPE_CHECKING:
    import onnx
    import onnxruntime.quantization.matmul_nbits_quantizer as nbits
else:
    onnx = lazy("onnx")
    nbits = lazy("onnxruntime.quantization.matmul_nbits_quantizer")

BITS = 4
_BLOCKS = (16, 32, 64, 128, 256)


def quantize_int4(model: onnx.ModelProto, params: QuantizeParams) -> onnx.ModelProto:
    """Round to nearest, a scale per block of `block_size` inputs."""
    if params.block_size not in _BLOCKS:
        raise InputError(
            f"a block of {params.block_size} is not possible",
            cause=f"MatMulNBits takes blocks of {', '.join(map(str, _BLOCKS))}",
            fix="Choose one of them; smaller is more accurate and larger is smaller.",
        )
    if params.overrides or (params.op_types and params.op_types != ("MatMul",)):
        raise InputError(
            "int4 quantizes the stored weights of MatMul and nothing else",
            cause="op_types or overrides ask for more",
            fix="Leave them out; exclude single nodes with nodes_to_exclude.",
        )
    with quiet():
        quantizer = nbits.MatMulNBitsQuantizer(
            model,
            bits=BITS,
            block_size=params.block_size,
            is_symmetric=params.symmetric_weights,
            nodes_to_exclude=list(params.nodes_to_exclude),
            op_types_to_quantize=("MatMul",),
        )
        quantizer.process()
    result: onnx.ModelProto = quantizer.model.model
    return result
