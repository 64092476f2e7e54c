"""Multiply-accumulates of one run, counted from shapes: what convolutions and matrix products cost anywhere."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.graph._bodies import domain_of
from modelwright.graph._load import Graph
from modelwright.graph._types import ValueSpec, value_spec
from modelwright.graph._work import work_rank

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

_DOMAINS = ("", "com.microsoft")
_INSIDE = "it stands in a subgraph or function, and how often that runs is not known"
_NO_RULE = "its products are not counted"


@dataclass(frozen=True)
class MacShare:
    op_type: str
    nodes: int
    macs: int


@dataclass(frozen=True)
class UncountedMacs:
    op_type: str
    nodes: int
    reason: str


@dataclass(frozen=True)
class Macs:
    """`total` is None where nodes could not be counted; `counted` is the sum of those that could."""

    total: int | None
    counted: int
    by_op: tuple[MacShare, ...]
    uncounted: tuple[UncountedMacs, ...]

    @property
    def shapes_missing(self) -> bool:
        return any(item.reason not in (_INSIDE, _NO_RULE) for item in self.uncounted)


def count_macs(graph: Graph, dims: Mapping[str, int] | None = None, *, infer: bool = False) -> Macs:
    """From the shapes that the model declares; with `infer` onnx infers the others, with `dims` for dynamic ones.

    onnx's inference is native code that some models crash: it belongs into a child.
    """
    shapes = _Shapes(_inferred(graph.model, dims or {}) if infer else graph.model)
    macs: Counter[str] = Counter()
    nodes: Counter[str] = Counter()
    unknown: Counter[tuple[str, str]] = Counter()
    for body in graph.bodies:
        for node in body.nodes:
            if work_rank(node.op_type) == 0:
                try:
                    macs[node.op_type] += _count(node, shapes) if body.kind == "graph" else _refuse(_INSIDE)
                    nodes[node.op_type] += 1
                except _Unknown as why:
                    unknown[node.op_type, str(why)] += 1
    by_op = tuple(MacShare(op, nodes[op], count) for op, count in macs.most_common())
    uncounted = tuple(UncountedMacs(op, count, why) for (op, why), count in unknown.most_common())
    counted = sum(macs.values())
    return Macs(None if uncounted else counted, counted, by_op, uncounted)


class _Unknown(Exception):
    """Why a node cannot be counted."""


def _refuse(reason: str) -> int:
    raise _Unknown(reason)


def _inferred(model: onnx.ModelProto, dims: Mapping[str, int]) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in dims:
                dim.dim_value = dims[dim.dim_param]
    if dims:
        # What was declared for the dynamic model would hide what follows from the sizes.
        del copy.graph.value_info[:]
    try:
        return onnx.shape_inference.infer_shapes(copy, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError, TypeError, RuntimeError):
        return copy


class _Shapes:
    """By the name of the tensor."""

    def __init__(self, model: onnx.ModelProto) -> None:
        graph = model.graph
        declared = (value_spec(value) for value in (*graph.value_info, *graph.input, *graph.output))
        self._values: dict[str, ValueSpec] = {value.name: value for value in declared}
        self._stored = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
        self._stored |= {
            node.output[0]: tuple(item.t.dims)
            for node in graph.node
            if node.op_type == "Constant" and node.output
            for item in node.attribute
            if item.name == "value"
        }

    def of(self, name: str) -> tuple[int, ...]:
        if name in self._stored:
            return self._stored[name]
        shape = self._values[name].shape if name in self._values else None
        if shape is None:
            raise _Unknown("the shapes around it are not known")
        loose = [dim for dim in shape if not isinstance(dim, int)]
        if loose:
            named = [str(dim) for dim in loose if dim is not None]
            raise _Unknown(f"the dimension {named[0]} is not fixed" if named else "a dimension is not known")
        return tuple(dim for dim in shape if isinstance(dim, int))


def _count(node: onnx.NodeProto, shapes: _Shapes) -> int:
    rule = _RULES.get(node.op_type) if domain_of(node.domain) in _DOMAINS else None
    if rule is None:
        raise _Unknown(_NO_RULE)
    try:
        return rule(node, shapes)
    except IndexError:
        raise _Unknown("it has fewer inputs or dimensions than its operator needs") from None


def _convolution(node: onnx.NodeProto, shapes: _Shapes, weight: int = 1) -> int:
    return math.prod(shapes.of(node.output[0])) * math.prod(shapes.of(node.input[weight])[1:])


def _quantized_convolution(node: onnx.NodeProto, shapes: _Shapes) -> int:
    return _convolution(node, shapes, weight=3)


def _transposed_convolution(node: onnx.NodeProto, shapes: _Shapes) -> int:
    """Every input element meets every kernel element of its channel once."""
    return math.prod(shapes.of(node.input[0])) * math.prod(shapes.of(node.input[1])[1:])


def _product(node: onnx.NodeProto, shapes: _Shapes) -> int:
    first = shapes.of(node.input[0])
    summed = first[-2] if _number(node, "transA") else first[-1]
    return math.prod(shapes.of(node.output[0])) * summed


def _packed_product(node: onnx.NodeProto, shapes: _Shapes) -> int:
    return math.prod(shapes.of(node.output[0])) * _number(node, "K")


def _recurrent(node: onnx.NodeProto, shapes: _Shapes) -> int:
    steps, batch = shapes.of(node.input[0])[:2]
    return steps * batch * (math.prod(shapes.of(node.input[1])) + math.prod(shapes.of(node.input[2])))


def _einsum(node: onnx.NodeProto, shapes: _Shapes) -> int:
    equation = next((item.s.decode() for item in node.attribute if item.name == "equation"), "").replace(" ", "")
    letters = equation.partition("->")[0].split(",")
    if not equation or "." in equation:
        raise _Unknown(_NO_RULE)
    sizes = {
        letter: size
        for word, name in zip(letters, node.input, strict=False)
        for letter, size in zip(word, shapes.of(name), strict=False)
    }
    return math.prod(sizes.values())


def _number(node: onnx.NodeProto, name: str) -> int:
    return next((item.i for item in node.attribute if item.name == name), 0)


_RULES: Mapping[str, Callable[[onnx.NodeProto, _Shapes], int]] = {
    **dict.fromkeys(("Conv", "FusedConv", "ConvInteger"), _convolution),
    "QLinearConv": _quantized_convolution,
    "ConvTranspose": _transposed_convolution,
    **dict.fromkeys(
        ("MatMul", "FusedMatMul", "Gemm", "FusedGemm", "QGemm", "MatMulInteger", "QLinearMatMul"), _product
    ),
    **dict.fromkeys(("MatMulIntegerToFloat", "DynamicQuantizeMatMul"), _product),
    **dict.fromkeys(("MatMulNBits", "MatMulBnb4", "MatMulFpQ4"), _packed_product),
    **dict.fromkeys(("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"), _recurrent),
    "Einsum": _einsum,
}
