"""The stored weights of a quantized model, rounded again so that the outputs of each product lose less."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.stages.quantize._moments import Learnt, ProductRows
from modelwright.stages.quantize._neighbours import beyond, packing_of
from modelwright.stages.quantize._rounding import WeightGrid, compensated, squared_error

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")


@dataclass(frozen=True)
class FloatWeights:
    """The weights of a quantized model as they were, by name; whose bias takes mean errors back; whether products of
    them must not saturate."""

    floats: Mapping[str, NDArray[Any]]
    corrected: frozenset[str]
    exact: bool


def round_weights(model: onnx.ModelProto, learnt: Iterable[Learnt], weights: FloatWeights) -> int:
    """Returns how many products lose less on the samples that nothing was learnt from; the others stay."""
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    halves = {node.output[0]: node for node in model.graph.node if node.op_type == "DequantizeLinear"}
    nodes = {node.name: node for node in model.graph.node}
    count = 0
    for item in learnt:
        node = nodes.get(item.reading.node)
        half = halves.get(node.input[1]) if node is not None else None
        tensor = stored.get(half.input[0]) if half is not None else None
        if node is None or half is None or tensor is None or tensor.data_type != onnx.TensorProto.INT8:
            continue
        rounded = _rounded(item, node, _GridWeight.of(half, stored), weights)
        if rounded is not None:
            tensor.CopyFrom(onnx.numpy_helper.from_array(rounded, tensor.name))
            count += 1
    return count


@dataclass(frozen=True)
class _GridWeight:
    """A stored weight and its grid, in the weight's own shape."""

    integers: NDArray[Any]
    scale: NDArray[Any]
    zero: NDArray[Any]

    @classmethod
    def of(cls, half: onnx.NodeProto, stored: Mapping[str, onnx.TensorProto]) -> _GridWeight:
        integers, scale, zero = (onnx.numpy_helper.to_array(stored[name]) for name in half.input)
        axis = next((item.i for item in half.attribute if item.name == "axis"), 1) % integers.ndim
        shape = [-1 if place == axis and scale.ndim else 1 for place in range(integers.ndim)]
        wide = (np.broadcast_to(array.reshape(shape), integers.shape) for array in (scale, zero))
        return cls(integers, *wide)

    def grid(self, reading: ProductRows) -> WeightGrid:
        """No integer may be larger than the largest there is, so that the range stays what it was."""
        largest = int(np.abs(self.integers.astype(np.int16)).max(initial=0))
        scale, zero = (reading.matrix(array).astype(np.float64) for array in (self.scale, self.zero))
        return WeightGrid(scale, zero, -min(largest, 127), min(largest, 127))


def _rounded(item: Learnt, node: onnx.NodeProto, stored: _GridWeight, weights: FloatWeights) -> NDArray[Any] | None:
    """None where the samples that judge say that nothing is won."""
    reading, mean = item.reading, item.reading.node in weights.corrected and math.prod(item.reading.kernel) == 1
    before, whole = stored.integers, weights.floats[item.reading.weight]
    if not item.learn.count or not item.judge.count or not np.isfinite(item.learn.products).all():
        return None
    grid, wanted = stored.grid(reading), reading.matrix(whole)
    matrix = compensated(wanted, grid, item.learn.about(mean=mean))
    after = reading.stored(matrix, before).astype(np.int8)
    packing = packing_of(node, before.ndim, before.shape[1]) if weights.exact else None
    if packing is not None:
        channels = [-1 if axis == packing.axis else 1 for axis in range(before.ndim)]
        after = np.where(beyond(after, packing).reshape(channels), before, after)
    judged = item.judge.about(mean=mean)
    lost = (
        squared_error(wanted - grid.values(reading.matrix(integers.astype(np.float64))), judged)
        for integers in (before, after)
    )
    return after if next(lost) > next(lost) else None
