"""Seams: places where a factor for each channel can be taken out of a tensor and given to the weights that read it.

Before the tensor stands what can divide its channels for nothing (the stored vectors of a norm, a Mul or Add with a
stored vector, a product, through operators that let positive factors pass), behind it only products, whose weights
take the factors back. The model computes the same; its 8-bit tensors have other ranges. A Mul of its
own before the products divides the channels of any tensor, also of one that a residual reads too: `scaling`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

SeamKind = Literal["smoothing", "equalization", "scaling"]
# f(a · x) = a · f(x) for every a above zero, channel by channel.
_PASSING = ("AveragePool", "Dropout", "GlobalAveragePool", "GlobalMaxPool", "Identity", "LeakyRelu", "MaxPool", "Relu")
# Their results may be integers already, and a Mul between would cost what those win.
_IN_INTEGERS = ("Clip", "Concat", "Conv", "ConvTranspose", *_PASSING)
_MOVING = ("Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
_POOLS = ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool")


@dataclass(frozen=True)
class Stored:
    """A stored tensor and the axis of the channels in it."""

    name: str
    axis: int


@dataclass(frozen=True)
class Seam:
    """`carriers` are divided by the factors, and so all the tensors from there to this one (`divided`); `readers`,
    which belong to `products`, are multiplied. `spatial` axes follow that of the channels."""

    kind: SeamKind
    tensor: str
    channels: int
    spatial: int
    carriers: tuple[Stored, ...]
    readers: tuple[Stored, ...]
    products: tuple[str, ...]
    divided: tuple[str, ...] = ()


def seams(model: onnx.ModelProto) -> tuple[Seam, ...]:
    """Each tensor that has one. A stored tensor that somebody else reads too cannot be changed."""
    graph = _Links(model)
    return tuple(seam for name in graph.makers for seam in graph.seam(name))


class _Links:
    def __init__(self, model: onnx.ModelProto) -> None:
        self.makers = {name: node for node in model.graph.node for name in node.output}
        self._dims = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
        self._readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
        for node in model.graph.node:
            for name in node.input:
                self._readers[name].append(node)
        self._uses = Counter(name for node in model.graph.node for name in node.input)
        self._uses.update(value.name for value in model.graph.output)
        inside = (item.g for node in model.graph.node for item in node.attribute if item.HasField("g"))
        self._uses.update(name for body in inside for node in body.node for name in (*node.input, *node.input))

    def seam(self, tensor: str) -> Iterator[Seam]:
        readers = [(node, self._read(node, tensor)) for node in self._readers[tensor]]
        products = [(node.name, *item) for node, item in readers if item is not None]
        kinds = {(channels, spatial) for *_, channels, spatial in products}
        if len(kinds) != 1:
            return
        ((channels, spatial),) = kinds
        alone = len(products) == self._uses[tensor]
        found = self._carriers(tensor, channels, spatial) if alone else None
        weights, names = tuple(item[1] for item in products), tuple(item[0] for item in products)
        if found is not None:
            yield Seam(found[0], tensor, channels, spatial, found[1], weights, names, tuple(self._on_the_way(tensor)))
        if not spatial and self._in_floats(tensor):
            yield Seam("scaling", tensor, channels, spatial, (), weights, names)

    def _on_the_way(self, tensor: str) -> Iterator[str]:
        """From what carries the factors to here; of a sum it is both parts."""
        yield tensor
        node = self.makers[tensor]
        if node.op_type in (*_PASSING, "Add"):
            yield from self._on_the_way(next(name for name in node.input if name not in self._dims))

    def _in_floats(self, tensor: str) -> bool:
        node = self.makers.get(tensor)
        while node is not None and node.op_type in _MOVING:
            node = self.makers.get(node.input[0])
        return node is not None and node.op_type not in _IN_INTEGERS

    def _read(self, node: onnx.NodeProto, tensor: str) -> tuple[Stored, int, int] | None:
        """How a product reads it: the weight with the axis of its input channels, how many, and axes behind them."""
        dims = self._own(node.input[1]) if len(node.input) > 1 and node.input[0] == tensor else None
        if dims is None:
            return None
        if node.op_type == "Conv" and len(dims) > 2:
            groups = _integer(node, "group", 1)
            if groups == 1:
                return Stored(node.input[1], 1), dims[1], len(dims) - 2
            alone = dims[1] == 1 and dims[0] == groups
            return (Stored(node.input[1], 0), groups, len(dims) - 2) if alone else None
        if node.op_type in ("Gemm", "MatMul") and len(dims) == 2 and not _integer(node, "transA", 0):
            axis = 1 if _integer(node, "transB", 0) else 0
            return Stored(node.input[1], axis), dims[axis], 0
        return None

    def _carriers(self, tensor: str, channels: int, spatial: int) -> tuple[SeamKind, tuple[Stored, ...]] | None:
        """What divides the channels of a tensor that only what follows reads."""
        node = self.makers.get(tensor)
        if node is None:
            return None
        if node.op_type in _PASSING and (spatial or node.op_type not in _POOLS):
            return self._further(node.input[0], channels, spatial, ())
        if node.op_type in ("Conv", "Gemm", "MatMul"):
            return self._product(node, channels, spatial)
        if node.op_type in ("LayerNormalization", "BatchNormalization"):
            return self._norm(node, channels, spatial)
        if node.op_type in ("Add", "Mul"):
            return self._by_vector(node, channels, spatial)
        return None

    def _further(
        self, tensor: str, channels: int, spatial: int, own: tuple[Stored, ...]
    ) -> tuple[SeamKind, tuple[Stored, ...]] | None:
        found = self._carriers(tensor, channels, spatial) if self._uses[tensor] == 1 else None
        return None if found is None else (found[0], (*found[1], *own))

    def _product(self, node: onnx.NodeProto, channels: int, spatial: int) -> tuple[SeamKind, tuple[Stored, ...]] | None:
        dims, convolves = self._own(node.input[1]), node.op_type == "Conv"
        if dims is None or convolves != bool(spatial) or (not convolves and len(dims) != 2):
            return None
        axis = 0 if convolves or _integer(node, "transB", 0) else 1
        vector = self._vector(node.input[2], channels, 0) if len(node.input) > 2 and node.input[2] else ()
        if vector is None or dims[axis] != channels:
            return None
        return "equalization", (Stored(node.input[1], axis), *vector)

    def _norm(self, node: onnx.NodeProto, channels: int, spatial: int) -> tuple[SeamKind, tuple[Stored, ...]] | None:
        if node.op_type == "LayerNormalization" and (spatial or _integer(node, "axis", -1) != -1):
            return None
        if node.op_type == "BatchNormalization" and (not spatial or len(node.output) != 1):
            return None
        vectors = [self._vector(name, channels, 0) for name in node.input[1:3] if name]
        return None if None in vectors else ("smoothing", tuple(item for one in vectors for item in one or ()))

    def _by_vector(
        self, node: onnx.NodeProto, channels: int, spatial: int
    ) -> tuple[SeamKind, tuple[Stored, ...]] | None:
        """A product with a stored vector is a carrier by itself; of a sum both parts must be divided."""
        stored = [name for name in node.input if name in self._dims]
        vector = self._vector(stored[0], channels, spatial) if len(stored) == 1 else None
        if vector is None:
            return None
        if node.op_type == "Mul":
            return "smoothing", vector
        (other,) = (name for name in node.input if name not in stored)
        return self._further(other, channels, spatial, vector)

    def _vector(self, name: str, channels: int, spatial: int) -> tuple[Stored, ...] | None:
        """A stored tensor with one value for each channel, which stand before the last `spatial` axes."""
        dims = self._own(name)
        axis = len(dims) - 1 - spatial if dims is not None else -1
        if dims is None or axis < 0 or dims[axis] != channels or math.prod(dims) != channels:
            return None
        return (Stored(name, axis),)

    def _own(self, name: str) -> tuple[int, ...] | None:
        """The shape of a stored tensor that nobody else reads."""
        return self._dims.get(name) if self._uses[name] == 1 else None


def _integer(node: onnx.NodeProto, name: str, usual: int) -> int:
    return next((int(item.i) for item in node.attribute if item.name == name), usual)
