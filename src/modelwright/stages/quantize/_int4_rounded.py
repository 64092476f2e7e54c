"""4-bit weights rounded again so that errors cancel: blocks and scales stay, the integers in them change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.stages.quantize._moments import Learnt
from modelwright.stages.quantize._rounding import WeightGrid, compensated, squared_error

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

_LARGEST = 15
# What MatMulNBits takes where no zero points are stored.
_MIDDLE = 8


def round_int4(model: onnx.ModelProto, learnt: Iterable[Learnt], weight_of: Callable[[str], NDArray[Any]]) -> int:
    """Returns how many products lose less on the samples that nothing was learnt from; the others stay."""
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes = {node.name: node for node in model.graph.node if node.op_type == "MatMulNBits"}
    count = 0
    for item in learnt:
        node = nodes.get(f"{item.reading.node}_Q4")
        if node is None or not item.learn.count or not np.isfinite(item.learn.products).all():
            continue
        blocks = _Blocks.of(node, stored)
        wanted = item.reading.matrix(weight_of(item.reading.weight))
        after = compensated(wanted, blocks.grid, item.learn.about(mean=False))
        judged = item.judge.about(mean=False)
        lost = (squared_error(wanted - blocks.grid.values(one), judged) for one in (blocks.integers, after))
        if next(lost) > next(lost):
            packed = _packed(after[0], onnx.numpy_helper.to_array(stored[node.input[1]]))
            stored[node.input[1]].CopyFrom(onnx.numpy_helper.from_array(packed, node.input[1]))
            count += 1
    return count


@dataclass(frozen=True)
class _Blocks:
    """The integers (1, outputs, inputs) of a MatMulNBits, and where they lie."""

    integers: NDArray[Any]
    grid: WeightGrid

    @classmethod
    def of(cls, node: onnx.NodeProto, stored: dict[str, onnx.TensorProto]) -> _Blocks:
        said = {item.name: item.i for item in node.attribute}
        outputs, inputs, size = said["N"], said["K"], said["block_size"]
        packed, scales, *zeros = (onnx.numpy_helper.to_array(stored[name]) for name in node.input[1:] if name)
        count = -(-inputs // size)
        middle = _unpacked(zeros[0].reshape(outputs, -1))[:, :count] if zeros else np.full((outputs, count), _MIDDLE)

        def by_input(values: NDArray[Any]) -> NDArray[Any]:
            return np.repeat(values.reshape(outputs, count), size, axis=1)[None, :, :inputs].astype(np.float64)

        scale = by_input(scales)
        grid = WeightGrid(np.where(scale == 0, 1.0, scale), by_input(middle), 0, _LARGEST)
        return cls(_unpacked(packed.reshape(outputs, -1))[None, :, :inputs].astype(np.float64), grid)


def _unpacked(values: NDArray[Any]) -> NDArray[Any]:
    """Two in each byte, the lower half first."""
    return np.stack([values & _LARGEST, values >> 4], axis=-1).reshape(len(values), -1)


def _packed(integers: NDArray[Any], before: NDArray[Any]) -> NDArray[Any]:
    """What lies behind the last input stays."""
    found = _unpacked(before.reshape(len(integers), -1))
    found[:, : integers.shape[1]] = integers
    joined: NDArray[Any] = found[:, 0::2] | (found[:, 1::2] << 4)
    return joined.astype(np.uint8).reshape(before.shape)
