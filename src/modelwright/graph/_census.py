"""Counting quantized weights, float weights and quantized activations, operator by operator."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import field
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright.graph._bodies import Body
from modelwright.graph._stored import Names, added_tensors, names_of
from modelwright.graph._types import dtype_bits, dtype_name, elements, is_float, stored_bytes

if TYPE_CHECKING:
    import onnx

_BIAS_BITS = 32
_QDQ = frozenset({"QuantizeLinear", "DequantizeLinear"})
_UINT8, _INT8 = 2, 3


@dataclass(frozen=True)
class ElementKind:
    """One way an element is stored or computed."""

    dtype: str
    bits: int
    quantized: bool
    dynamic: bool = False


@dataclass
class Tally:
    """Running totals of one kind."""

    tensors: int = 0
    elements: int = 0


@dataclass
class Census:
    """What a model's weights and activations are made of. A tensor used twice is counted once.

    Weights have two dimensions or more and are multiplied or looked up. Vectors (biases, norms, constants of
    element-wise operators, which quantizers give the activations' width) and what is only added to activations, which
    is a bias of whatever shape (positions, attention biases), count in a model that has nothing else.
    """

    weights: dict[ElementKind, Tally] = field(default_factory=dict)
    activations: dict[ElementKind, Tally] = field(default_factory=dict)
    granularity: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _WeightOnly:
    """Operators with packed low-bit weights and float activations."""

    weights: tuple[int, ...]
    scale: int
    bits_attribute: str | None = None
    bits: int = 4


_WEIGHT_ONLY = {
    "MatMulNBits": _WeightOnly((1,), 2, "bits"),
    "MatMulBnb4": _WeightOnly((1,), 2),
    "MatMulFpQ4": _WeightOnly((1,), 0),
    "GatherBlockQuantized": _WeightOnly((0,), 2, "bits"),
    "QMoE": _WeightOnly((2, 5, 8), 3, "expert_weight_bits"),
}
# Integer operators: where a weight can be. In the first group other nodes quantized the activations.
_INTEGER = {
    "MatMulInteger": (0, 1),
    "ConvInteger": (0, 1),
    "MatMulIntegerToFloat": (0, 1),
    "QAttention": (1,),
}
_DYNAMIC = {"DynamicQuantizeMatMul": (1,), "DynamicQuantizeLSTM": (1, 2), "DynamicQuantizeLinear": ()}
_QLINEAR_DATA = (0, 3)
_QLINEAR_ZERO_POINT = 2


def may_be_quantized(operators: Iterable[str]) -> bool:
    """Whether one of them computes with integers, or says what floats were rounded to."""
    known = {*_QDQ, *_WEIGHT_ONLY, *_DYNAMIC, *_INTEGER, "QGemm"}
    return any(operator in known or operator.startswith("QLinear") for operator in operators)


def take_census(bodies: tuple[Body, ...]) -> Census:
    """One pass over all nodes, then the float tensors that no quantizing node explained."""
    names = names_of(bodies)
    counter = _Counter(added_tensors(bodies, names))
    for body in bodies:
        counter.body(body, names[id(body)])
    for body in bodies:
        counter.float_weights(names[id(body)].own.values())
    return counter.finish()


class _Counter:
    def __init__(self, added: set[int]) -> None:
        self._census = Census()
        self._added = added
        # Identity of tensors: `names_of` keeps them alive while we count.
        self._explained: set[int] = set()
        self._quantized_values: set[tuple[int, str]] = set()
        self._float_scales: list[ElementKind] = []
        self._vectors: dict[ElementKind, Tally] = {}

    def body(self, body: Body, names: Names) -> None:
        for node in body.nodes:
            operator = node.op_type
            if operator in _QDQ:
                self._qdq(node, names)
            elif operator in _WEIGHT_ONLY:
                self._weight_only(node, names, _WEIGHT_ONLY[operator])
            elif operator in _DYNAMIC:
                self._integer_weights(node, names, _DYNAMIC[operator])
                self._add(self._census.activations, ElementKind("uint8", 8, True, dynamic=True), 0)
            elif operator in _INTEGER:
                self._integer_weights(node, names, _INTEGER[operator])
            elif operator.startswith("QLinear") or operator == "QGemm":
                self._integer_weights(node, names, _QLINEAR_DATA)
                zero_point = names.tensor(node, _QLINEAR_ZERO_POINT)
                self._add(self._census.activations, _kind(zero_point.data_type if zero_point else _UINT8), 0)

    def float_weights(self, tensors: Iterable[onnx.TensorProto]) -> None:
        for tensor in tensors:
            if id(tensor) not in self._explained and is_float(tensor.data_type):
                self._explained.add(id(tensor))
                self._add_weight(tensor, _kind(tensor.data_type, quantized=False), elements(tensor.dims[:]))

    def finish(self) -> Census:
        """With weight-only Q/DQ the activations are as wide as the scales."""
        self._census.weights = self._census.weights or self._vectors
        if not self._census.activations:
            for kind in self._float_scales:
                self._add(self._census.activations, kind, 0)
        return self._census

    def _qdq(self, node: onnx.NodeProto, names: Names) -> None:
        for index in (1, 2):
            self._explain(names.tensor(node, index))
        if not node.input or not node.output:
            return
        origin = names.origin(node.input[0], through_gather=node.op_type == "DequantizeLinear")
        stored = names.stored.get(origin)
        code = _quantized_type(node, names, stored)
        if stored is not None:
            self._qdq_weight(node, names, stored, code)
        else:
            value = node.output[0] if node.op_type == "QuantizeLinear" else origin
            producer = names.producers.get(value)
            repeated = node.op_type == "DequantizeLinear" and producer is not None and producer.op_type in _QUANTIZERS
            if not repeated and (id(names), value) not in self._quantized_values:
                self._quantized_values.add((id(names), value))
                self._add(self._census.activations, _kind(code), 0)

    def _qdq_weight(self, node: onnx.NodeProto, names: Names, stored: onnx.TensorProto, code: int) -> None:
        kind = _kind(code)
        if kind.bits >= _BIAS_BITS:
            self._explain(stored)
            return
        scale = names.tensor(node, 1)
        self._weight(stored, kind, elements(stored.dims))
        if scale is not None:
            self._census.granularity.add(_granularity(scale))
            self._float_scales.append(_kind(scale.data_type, quantized=False))

    def _weight_only(self, node: onnx.NodeProto, names: Names, layout: _WeightOnly) -> None:
        bits = _integer_attribute(node, layout.bits_attribute, layout.bits)
        for index in range(len(node.input)):
            tensor = names.tensor(node, index)
            if tensor is not None and index in layout.weights:
                packed = (stored_bytes(tensor.data_type, tensor.dims) or 0) * 8 // bits
                self._weight(tensor, ElementKind(f"uint{bits}", bits, True), packed)
        scale = names.tensor(node, layout.scale)
        if scale is not None and is_float(scale.data_type):
            self._explain(scale)
            self._add(self._census.activations, _kind(scale.data_type, quantized=False), 0)
        self._census.granularity.add("blocked")

    def _integer_weights(self, node: onnx.NodeProto, names: Names, where: tuple[int, ...]) -> None:
        for index in range(len(node.input)):
            tensor = names.tensor(node, index)
            if tensor is None:
                continue
            if index in where and tensor.data_type in (_UINT8, _INT8):
                self._weight(tensor, _kind(tensor.data_type), elements(tensor.dims))
            self._explain(tensor)

    def _weight(self, tensor: onnx.TensorProto, kind: ElementKind, count: int) -> None:
        if id(tensor) not in self._explained:
            self._explained.add(id(tensor))
            self._add_weight(tensor, kind, count)

    def _add_weight(self, tensor: onnx.TensorProto, kind: ElementKind, count: int) -> None:
        is_bias = len(tensor.dims) < 2 or id(tensor) in self._added
        self._add(self._vectors if is_bias else self._census.weights, kind, count)

    def _explain(self, tensor: onnx.TensorProto | None) -> None:
        if tensor is not None:
            self._explained.add(id(tensor))

    @staticmethod
    def _add(tallies: dict[ElementKind, Tally], kind: ElementKind, count: int) -> None:
        tally = tallies.get(kind)
        if tally is None:
            tally = tallies[kind] = Tally()
        tally.tensors += 1
        tally.elements += count


_QUANTIZERS = frozenset({"QuantizeLinear", "DynamicQuantizeLinear"})


def _quantized_type(node: onnx.NodeProto, names: Names, stored: onnx.TensorProto | None) -> int:
    """Stored integers tell it; else the zero point; else `output_dtype`; else the default, uint8."""
    if stored is not None and node.op_type == "DequantizeLinear":
        return stored.data_type
    zero_point = names.tensor(node, 2)
    if zero_point is not None:
        return zero_point.data_type
    return _integer_attribute(node, "output_dtype", 0) or _UINT8


@functools.cache
def _kind(code: int, *, quantized: bool = True) -> ElementKind:
    return ElementKind(dtype_name(code), dtype_bits(code) or _BIAS_BITS, quantized)


def _granularity(scale: onnx.TensorProto) -> str:
    if elements(scale.dims) <= 1:
        return "per-tensor"
    return "per-axis" if len(scale.dims) == 1 else "blocked"


def _integer_attribute(node: onnx.NodeProto, name: str | None, default: int) -> int:
    """A number of bits; one that cannot be one, of a damaged file, counts for nothing."""
    found = next((item.i for item in node.attribute if item.name == name), default)
    return found if found > 0 else default
