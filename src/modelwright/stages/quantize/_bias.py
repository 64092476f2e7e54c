"""Bias correction: what rounding the weights adds to the mean of each output channel is taken off its bias.

A rounded weight is off by a fixed amount, so a product of it is off on average by that amount times the mean of its
input. The means are found while the ranges are; the correction costs nothing when the model runs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

_AXES_AS_INPUT = 18
# Of the elements of a weight: what is computed with is there several times over, in double precision.
_PIECE = 1 << 22


@dataclass(frozen=True)
class Product:
    """A Conv, Gemm or MatMul with a stored weight whose bias can be corrected, and the tensor it reads."""

    node: str
    source: str
    channels: int
    spatial: int

    @property
    def mean(self) -> str:
        return f"{self.node}::Mean"


def products(model: onnx.ModelProto, nodes: set[str]) -> tuple[Product, ...]:
    """Those of `nodes` that have a bias of their own."""
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    found = []
    for node in model.graph.node:
        weight = stored.get(node.input[1]) if len(node.input) > 1 else None
        if node.name not in nodes or weight is None or node.input[0] in stored:
            continue
        if node.op_type == "Conv" and len(node.input) == 3:
            channels = weight.dims[1] * _attribute(node, "group", 1)
            found.append(Product(node.name, node.input[0], channels, len(weight.dims) - 2))
        elif node.op_type in ("Gemm", "MatMul") and len(weight.dims) == 2 and not _attribute(node, "transA", 0):
            channels = weight.dims[1 if _attribute(node, "transB", 0) else 0]
            found.append(Product(node.name, node.input[0], channels, 0))
    return tuple(found)


def add_means(model: onnx.ModelProto, found: tuple[Product, ...], opset: int) -> None:
    """A value for each product: the mean of its input by channel."""
    for item in found:
        _add_mean(model, item, opset)


def _add_mean(model: onnx.ModelProto, item: Product, opset: int) -> None:
    name = item.mean
    source, axes = item.source, [0, *range(2, 2 + item.spatial)]
    if not item.spatial:
        source, axes = f"{name}::rows", [0]
        shape = onnx.numpy_helper.from_array(np.array([-1, item.channels], np.int64), f"{name}::shape")
        model.graph.initializer.append(shape)
        model.graph.node.append(onnx.helper.make_node("Reshape", [item.source, shape.name], [source], name=source))
    if opset >= _AXES_AS_INPUT:
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(axes, np.int64), f"{name}::axes"))
        node = onnx.helper.make_node("ReduceMean", [source, f"{name}::axes"], [name], name=name, keepdims=0)
    else:
        node = onnx.helper.make_node("ReduceMean", [source], [name], name=name, keepdims=0, axes=axes)
    model.graph.node.append(node)


def correct_biases(
    model: onnx.ModelProto,
    means: dict[str, NDArray[Any]],
    weights: dict[str, NDArray[Any]],
    read: Callable[[onnx.TensorProto], NDArray[Any]],
) -> int:
    """Move the biases of a quantized model; returns of how many products.

    `means` by the name of the product, `weights` as they were, by the name of the float tensor; what is stored now is
    `read`.
    """
    graph = _Quantized.of(model, read)
    return sum(graph.correct(node, means[node.name], weights) for node in model.graph.node if node.name in means)


@dataclass(frozen=True)
class _Quantized:
    """A quantized graph whose stored tensors are read through their DequantizeLinear."""

    stored: dict[str, onnx.TensorProto]
    makers: dict[str, onnx.NodeProto]
    readers: dict[str, list[onnx.NodeProto]]
    read: Callable[[onnx.TensorProto], NDArray[Any]]

    @classmethod
    def of(cls, model: onnx.ModelProto, read: Callable[[onnx.TensorProto], NDArray[Any]]) -> _Quantized:
        readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
        for node in model.graph.node:
            for name in dict.fromkeys(node.input):
                readers[name].append(node)
        stored = {tensor.name: tensor for tensor in model.graph.initializer}
        return cls(stored, {name: node for node in model.graph.node for name in node.output}, readers, read)

    def correct(self, node: onnx.NodeProto, mean: NDArray[Any], weights: dict[str, NDArray[Any]]) -> bool:
        half = self.makers.get(node.input[1])
        bias = self._bias(node)
        if bias is None or half is None or half.input[0] not in self.stored:
            return False
        before, grid = weights[half.input[0].removesuffix("_quantized")], self._grid(half)
        parts = (_per_output(node, grid.lost(before, part), mean) for part in _outputs(node, before.shape))
        return self._add(bias, np.concatenate(list(parts)))

    def _bias(self, node: onnx.NodeProto) -> str | None:
        """The tensor that is added to the product, where nothing else reads it."""
        name = node.input[2] if len(node.input) > 2 else None
        if node.op_type == "MatMul":
            result = self._behind_pair(node.output[0])
            readers = self.readers[result]
            added = readers[0].input if len(readers) == 1 and readers[0].op_type == "Add" else ()
            name = next((item for item in added if item != result), None)
        return name if name is not None and len(self.readers[name]) == 1 else None

    def _behind_pair(self, name: str) -> str:
        readers = self.readers[name]
        if len(readers) == 1 and readers[0].op_type in ("QuantizeLinear", "DequantizeLinear"):
            return self._behind_pair(readers[0].output[0])
        return name

    def _grid(self, half: onnx.NodeProto) -> _StoredGrid:
        array, scale, zero = (self.read(self.stored[name]) for name in half.input)
        axis = _attribute(half, "axis", 1) % array.ndim
        shape = [-1 if place == axis and scale.ndim else 1 for place in range(array.ndim)]
        wide = (np.broadcast_to(item.astype(np.float32).reshape(shape), array.shape) for item in (scale, zero))
        return _StoredGrid(array, *wide)

    def _add(self, name: str, change: NDArray[Any]) -> bool:
        tensor = self.stored.get(name)
        half = self.makers.get(name)
        if half is not None and half.input[0] in self.stored and len(self.readers[half.input[0]]) == 1:
            tensor = self.stored[half.input[0]]
            change = np.rint(change / onnx.numpy_helper.to_array(self.stored[half.input[1]]))
        if tensor is None or tensor.data_type not in (onnx.TensorProto.FLOAT, onnx.TensorProto.INT32):
            return False
        array = self.read(tensor)
        if array.size != change.size or not np.isfinite(change).all():
            return False
        moved = array.astype(np.float64) + change.reshape(array.shape)
        tensor.CopyFrom(onnx.numpy_helper.from_array(moved.astype(array.dtype), tensor.name))
        return True


@dataclass(frozen=True, eq=False)
class _StoredGrid:
    """Stored integers, and what they stand for."""

    integers: NDArray[Any]
    scale: NDArray[Any]
    zero: NDArray[Any]

    def lost(self, before: NDArray[Any], part: tuple[slice, ...]) -> NDArray[Any]:
        """What they stand for, taken off what was there `before`; in place."""
        found: NDArray[Any] = self.integers[part].astype(np.float32)
        found -= self.zero[part]
        found *= self.scale[part]
        lost: NDArray[Any] = np.subtract(before[part], found, out=found if before.dtype == found.dtype else None)
        return lost


def _outputs(node: onnx.NodeProto, shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Parts of a large weight, some outputs of the product at a time; groups stay together."""
    axis = 0 if node.op_type == "Conv" or _attribute(node, "transB", 0) else 1
    whole = _attribute(node, "group", 1) > 1
    count = shape[axis] if whole else max(1, _PIECE * shape[axis] // max(1, math.prod(shape)))
    for begin in range(0, shape[axis], max(1, count)):
        yield (*(slice(None) for _ in range(axis)), slice(begin, begin + count))


def _per_output(node: onnx.NodeProto, lost: NDArray[Any], mean: NDArray[Any]) -> NDArray[Any]:
    """What each output channel loses on average."""
    if node.op_type != "Conv":
        rows = lost if _attribute(node, "transB", 0) else lost.T
        found: NDArray[Any] = rows.astype(np.float64) @ mean * _scale(node, "alpha")
        return found
    groups = _attribute(node, "group", 1)
    by_input = lost.astype(np.float64).reshape(groups, lost.shape[0] // groups, lost.shape[1], -1).sum(axis=-1)
    summed: NDArray[Any] = np.einsum("gok,gk->go", by_input, mean.reshape(groups, -1)).reshape(-1)
    return summed


def _scale(node: onnx.NodeProto, name: str) -> float:
    return next((item.f for item in node.attribute if item.name == name), 1.0)


def _attribute(node: onnx.NodeProto, name: str, usual: int) -> int:
    return next((int(item.i) for item in node.attribute if item.name == name), usual)
