"""onnxruntime's quantizer over weights that stay in their file: they are read one at a time, in pieces, and what is
made of them goes to a file too. What is written is the same."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnxruntime.quantization import base_quantizer, qdq_quantizer, quant_utils

from modelwright.graph import pieces
from modelwright.stages.quantize._weights import Detached

_INTEGERS = frozenset({onnx.TensorProto.INT8, onnx.TensorProto.UINT8, onnx.TensorProto.INT16, onnx.TensorProto.UINT16})


@contextlib.contextmanager
def outside(weights: Detached) -> Iterator[None]:
    """onnxruntime's quantizer inside reads and stores large weights there."""
    reader = _WeightReader(weights)
    places = [
        (quant_utils, "tensor_proto_to_array", reader.values),
        (base_quantizer, "tensor_proto_to_array", reader.values),
        (qdq_quantizer, "tensor_proto_to_array", reader.values),
        (qdq_quantizer, "quantize_onnx_initializer", reader.quantized),
    ]
    theirs = [(module, name, getattr(module, name)) for module, name, _ in places]
    try:
        for module, name, ours in places:
            setattr(module, name, ours)
        yield
    finally:
        for module, name, before in theirs:
            setattr(module, name, before)


class _WeightReader:
    def __init__(self, weights: Detached) -> None:
        self._weights = weights
        self._to_array = quant_utils.tensor_proto_to_array
        self._quantize = quant_utils.quantize_onnx_initializer

    def values(self, tensor: onnx.TensorProto) -> NDArray[Any]:
        """In place of onnxruntime's, which takes what a tensor holds itself."""
        if tensor.data_location == onnx.TensorProto.EXTERNAL and tensor.data_type == onnx.TensorProto.FLOAT:
            return self._weights.values(tensor)
        found: NDArray[Any] = self._to_array(tensor)
        return found

    def quantized(
        self,
        weight: onnx.TensorProto,
        quant_type: int,
        zero_point: NDArray[Any],
        scale: NDArray[Any],
        axis: int | None = None,
        quant_weight_name: str | None = None,
        block_size: int = 0,
    ) -> onnx.TensorProto:
        """In place of onnxruntime's, which takes a weight apart channel by channel."""
        if quant_type not in _INTEGERS or block_size:
            other: onnx.TensorProto = self._quantize(
                weight, quant_type, zero_point, scale, axis, quant_weight_name, block_size
            )
            return other
        name = quant_weight_name or f"{weight.name}{quant_utils.TENSOR_NAME_QUANT_SUFFIX}"
        values = self.values(weight)
        made = self._pieces(values, quant_type, _beside(values, scale, axis), _beside(values, zero_point, axis))
        return self._weights.store(name, quant_type, weight.dims, made)

    def _pieces(
        self, values: NDArray[Any], quant_type: int, scale: NDArray[Any], zero: NDArray[Any]
    ) -> Iterator[NDArray[Any]]:
        begin = 0
        for rows in pieces(values):
            part = slice(begin, begin + len(rows)) if rows.ndim else ...
            begin += len(rows) if rows.ndim else 0
            yield quant_utils.quantize_nparray(quant_type, rows, _rows(scale, part), _rows(zero, part))


def _beside(values: NDArray[Any], numbers: NDArray[Any], axis: int | None) -> NDArray[Any]:
    """One number for all, or one for each place of the axis, in the shape that goes with the values."""
    if axis is None:
        return numbers
    return np.reshape(numbers, [-1 if place == axis % values.ndim else 1 for place in range(values.ndim)])


def _rows(numbers: NDArray[Any], part: Any) -> NDArray[Any]:
    return numbers[part] if numbers.ndim and len(numbers) > 1 else numbers
