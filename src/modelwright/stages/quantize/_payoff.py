"""Where integers pay on the CPU: products whose integer kernel, with the ways there and back, takes less than floats.

A dense convolution with many channels takes half the time in 8 bits. One that reads 3 or writes 18 channels, one over a
few hundred values, a depthwise one whose channels do not fill 16 lanes: they take longer, and lose accuracy for it. The
costs are of onnxruntime's kernels on one AVX2 core in nanoseconds, from profiles of five trained models; what counts is
their ratio. The cheapest parting into an integer and a float side is a minimum cut.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright.stages.quantize._cut import Cut
from modelwright.stages.quantize._pairs import Links
from modelwright.stages.quantize._scope import LOOKED_UP, WORKERS

if TYPE_CHECKING:
    import onnx

_NEVER = 1e15
_CALL, _INTEGER_CALL = 5_000.0, 9_000.0
_QUANTIZE, _DEQUANTIZE, _STEP = 0.9, 0.55, 6_000.0
_LOOK_UP, _POOL_TAP = 0.37, 3.6
_MACS_PER_NS, _FEW_MACS_PER_NS, _INTEGER_MACS_PER_NS = 45.0, 12.0, 90.0
# The larger part of the weights, or of the work, must be integers for the label to be true; so much, in nanoseconds, a
# weight may cost for that in the end.
_SHARE = 0.55
# The costs are fitted: only this far beyond floats it is sure that nothing was won.
_IN_VAIN = 1.25
_WORTH_OF_A_WEIGHT = (0.0, 0.1, 0.3, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0)


@dataclass(frozen=True)
class Costs:
    """Of one product, as floats and as integers."""

    floats: float
    integers: float
    weight: str
    elements: int
    work: float


@dataclass(frozen=True)
class FloatScope:
    """The nodes that are asked for, by operator and by what is left out."""

    operators: Container[str]
    excluded: Container[str]

    def holds(self, node: onnx.NodeProto) -> bool:
        return node.op_type in self.operators and node.name not in self.excluded


@dataclass(frozen=True)
class Parting:
    """Products that had better stay float, and whether floats alone would clearly be faster than what is left."""

    floats: frozenset[str] = frozenset()
    in_vain: bool = False


def faster_in_float(graph: onnx.GraphProto, scope: FloatScope, sizes: Mapping[str, int]) -> Parting:
    """Of the products of a scope. `sizes` are the elements of each tensor, as they were seen."""
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    costs = {node.name: found for node in graph.node if scope.holds(node) if (found := _costs(node, shapes, sizes))}
    stored = sum(math.prod(tensor.dims) for tensor in graph.initializer if tensor.data_type == tensor.FLOAT)
    work = sum(item.work for item in costs.values())
    network = _network(graph, scope, sizes, costs)
    for worth in _WORTH_OF_A_WEIGHT:
        integers, cost = network.cheapest({name: worth * item.elements for name, item in costs.items()})
        taken = [costs[name] for name in integers & costs.keys()]
        weights = sum({item.weight: item.elements for item in taken}.values())
        if weights >= _SHARE * stored or sum(item.work for item in taken) >= _SHARE * work:
            floats = frozenset(costs.keys() - integers)
            spent = cost - worth * sum(costs[name].elements for name in floats)
            return Parting(floats, spent > _IN_VAIN * sum(item.floats for item in costs.values()))
    return Parting()


def _network(graph: onnx.GraphProto, scope: FloatScope, sizes: Mapping[str, int], costs: Mapping[str, Costs]) -> Cut:
    links, cut = Links.of(graph), Cut()
    for node in graph.node:
        if not scope.holds(node):
            cut.add(node.name, Cut.SINK, _NEVER)
        elif node.name in costs:
            item = costs[node.name]
            cut.add(Cut.SOURCE, node.name, item.floats)
            cut.add(node.name, Cut.SINK, item.integers)
        elif node.op_type in WORKERS:
            cut.add(Cut.SOURCE, node.name, _NEVER)
        elif node.op_type in LOOKED_UP:
            # Floats have it inside the product before it.
            cut.add(node.name, Cut.SINK, _LOOK_UP * sizes.get(node.output[0], 0))
    stored = {tensor.name for tensor in graph.initializer}
    for name, readers in links.readers.items():
        if name not in stored and name in sizes:
            _ways(cut, (name, links.makers.get(name)), readers, sizes)
    for name in links.shown:
        maker = links.makers.get(name)
        if maker is not None and maker.op_type not in _WRITES_FLOATS:
            cut.add(maker.name, Cut.SINK, _STEP + _DEQUANTIZE * sizes.get(name, 0))
    return cut


_WRITES_FLOATS = frozenset({"Gemm", "MatMul"})


def _ways(
    cut: Cut, tensor: tuple[str, onnx.NodeProto | None], readers: Iterable[onnx.NodeProto], sizes: Mapping[str, int]
) -> None:
    """One QuantizeLinear for all integer readers of a float tensor; a DequantizeLinear for each float reader."""
    name, maker = tensor
    made, size = f"{name}::integers", sizes[name]
    floats = maker.name if maker is not None else Cut.SINK
    cut.add(made, floats, _STEP + _QUANTIZE * size + (_pooled(maker, sizes) if maker is not None else 0.0))
    for reader in readers:
        cut.add(reader.name, made, _NEVER)
        cut.add(reader.name, floats, _pooled(reader, sizes))
        if maker is not None and maker.op_type not in _WRITES_FLOATS:
            cut.add(maker.name, reader.name, _STEP + _DEQUANTIZE * size)


def _pooled(node: onnx.NodeProto, sizes: Mapping[str, int]) -> float:
    """Of a MaxPool between floats and integers: onnxruntime quantizes before it, and has a slow kernel for that."""
    if node.op_type != "MaxPool":
        return 0.0
    kernel = next((item.ints for item in node.attribute if item.name == "kernel_shape"), ())
    return _POOL_TAP * math.prod(kernel) * sizes.get(node.output[0], 0)


def _costs(node: onnx.NodeProto, shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[str, int]) -> Costs | None:
    """None where nothing is known: those stay as they are asked for."""
    weight = shapes.get(node.input[1]) if len(node.input) > 1 else None
    written = sizes.get(node.output[0])
    if weight is None or not written or 0 in weight:
        return None
    if node.op_type == "Conv":
        return _convolution(node, weight, written)
    return _product(node, weight, written) if node.op_type in _WRITES_FLOATS and len(weight) == 2 else None


def _product(node: onnx.NodeProto, weight: tuple[int, ...], written: int) -> Costs:
    """Few rows wait for the weights to be read, and integers are a fourth of the bytes."""
    elements = math.prod(weight)
    rows = written / weight[0 if _attribute(node, "transB", 0) else 1]
    floats = _CALL + elements * max(rows / _MACS_PER_NS, 0.1)
    integers = _INTEGER_CALL + elements * max(rows / _INTEGER_MACS_PER_NS, 0.03)
    return Costs(floats, integers, node.input[1], elements, elements * rows)


def _convolution(node: onnx.NodeProto, weight: tuple[int, ...], written: int) -> Costs:
    channels, read, taps = weight[0], weight[1], math.prod(weight[2:])
    places, elements = written / channels, math.prod(weight)
    facts = (node.input[1], elements, places * elements)
    if read == 1 and _attribute(node, "group", 1) == channels > 1:
        integers = 2.1 if channels % 16 else 0.15 + 0.05 * taps
        return Costs(_CALL + written * (0.2 + 0.05 * taps), _INTEGER_CALL + written * integers, *facts)
    floats = read * taps * _up(channels, 8) / (_MACS_PER_NS if channels > 8 else _FEW_MACS_PER_NS)
    integers = read * taps * _up(channels, 16) / _INTEGER_MACS_PER_NS + 0.15 * channels
    if channels < 16 or channels % 8:
        integers += 8.0
    if channels < 8:
        integers += 1.5 * read * taps
    # Other than these, the values under the kernel are first copied side by side, row by row.
    if taps > 1 and read % 16:
        integers += taps / weight[-1] * (7 + 0.4 * read * weight[-1])
    return Costs(_CALL + places * floats, _INTEGER_CALL + places * integers, *facts)


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def _attribute(node: onnx.NodeProto, name: str, usual: int) -> int:
    return next((int(item.i) for item in node.attribute if item.name == name), usual)
