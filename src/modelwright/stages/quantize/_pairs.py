"""Which tensors carry a pair: on the CPU those that an integer kernel of onnxruntime reads, or cannot but write.

A pair costs accuracy wherever it stands and buys speed only in an integer kernel. So a float operator reads the float
tensor itself, an operator that only moves values stays float where no integer kernel is before or behind it, and a
MatMul or Gemm whose readers are all float hands on the floats that it adds up anyway.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.graph import names_read
from modelwright.stages.quantize._order import drop_named
from modelwright.stages.quantize._scope import CLAMPS, LOOKED_UP

if TYPE_CHECKING:
    import numpy as np
    import onnx
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

# Kernels that onnxruntime's CPU provider puts in the place of operators between pairs. The first kind writes integers;
# the second can write floats (MatMulIntegerToFloat, QGemm without a scale for its output).
_WRITES_INTEGERS = frozenset({"Add", "Concat", "Conv", "GlobalAveragePool", "Mul", "Sigmoid", "Softmax", "Where"})
_KERNELS = _WRITES_INTEGERS | {"Gemm", "MatMul"}
# They run on integers as well as on floats, so integers are worth it only beside an integer kernel.
_MOVES = frozenset(
    {
        "AveragePool",
        "DepthToSpace",
        "Flatten",
        "MaxPool",
        "Reshape",
        "Resize",
        "Slice",
        "Squeeze",
        "Transpose",
        "Unsqueeze",
    }
)
_LARGEST_BIAS = 2**30


@dataclass(frozen=True)
class IntegerNodes:
    """The nodes of a float graph that will run on integers. `idle` ones were asked for and have no use for them."""

    names: frozenset[str]
    idle: frozenset[str]
    outputs: dict[str, str]

    def deleted(self, model: onnx.ModelProto) -> set[str]:
        """Outputs of nodes that the quantizer has left out since."""
        kept = {node.name for node in model.graph.node}
        return {output for output, node in self.outputs.items() if node not in kept}


def integer_nodes(graph: onnx.GraphProto, operators: Container[str], excluded: Container[str]) -> IntegerNodes:
    """What onnxruntime's CPU provider can make of a scope."""
    scope = {node.name: node for node in graph.node if node.op_type in operators and node.name not in excluded}
    reach = _Reach(Links.of(graph), frozenset(scope))
    names = {name for name, node in scope.items() if reach.worth_it(node)}
    idle = {name for name, node in scope.items() if name not in names and node.op_type in _MOVES | CLAMPS | LOOKED_UP}
    outputs = {output: node.name for node in graph.node for output in node.output}
    return IntegerNodes(frozenset(names), frozenset(idle), outputs)


def keep_needed_pairs(model: onnx.ModelProto, integers: IntegerNodes) -> int:
    """Remove the pairs that no integer kernel needs; returns how many."""
    before = set(_stored_names(model))
    removed = _drop_idle(model, integers)
    _store_added_biases(model, integers)
    _drop_unused(model, before)
    return removed


def _drop_idle(model: onnx.ModelProto, integers: IntegerNodes) -> int:
    """Let float operators read the float tensor, and remove pairs that nobody reads then."""
    links = Links.of(model.graph)
    clamped = integers.deleted(model)
    dead: set[str] = set()
    for pair in links.pairs():
        # A tensor that its pair clamps, or that is written as integers, has no float form to read.
        maker = links.makers.get(pair.source)
        if {pair.source, pair.result} & clamped or (maker is not None and _writes_integers(maker, integers)):
            continue
        if _bypass(links, pair, integers.names):
            dead |= {pair.first.name, pair.second.name}
    kept = [type(node).FromString(node.SerializeToString()) for node in model.graph.node if node.name not in dead]
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return len(dead) // 2


@dataclass(frozen=True)
class _Pair:
    first: onnx.NodeProto
    second: onnx.NodeProto

    @property
    def source(self) -> str:
        return str(self.first.input[0])

    @property
    def result(self) -> str:
        return str(self.second.output[0])


@dataclass(frozen=True)
class Links:
    """Who writes and who reads each tensor, also from inside its subgraphs."""

    makers: dict[str, onnx.NodeProto]
    readers: dict[str, list[onnx.NodeProto]]
    shown: frozenset[str]

    @classmethod
    def of(cls, graph: onnx.GraphProto) -> Links:
        readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
        for node in graph.node:
            for name in dict.fromkeys(names_read(node)):
                readers[name].append(node)
        makers = {name: node for node in graph.node for name in node.output}
        return cls(makers, readers, frozenset(value.name for value in graph.output))

    def pairs(self) -> Iterator[_Pair]:
        for second in list(self.makers.values()):
            first = self.makers.get(second.input[0]) if second.op_type == "DequantizeLinear" else None
            if first is not None and first.op_type == "QuantizeLinear" and len(self.readers[first.output[0]]) == 1:
                yield _Pair(first, second)


@dataclass(frozen=True)
class _Reach:
    """Which nodes are beside integer kernels, directly or by way of nodes that move or clamp values."""

    links: Links
    scope: frozenset[str]
    before: dict[str, bool] = field(default_factory=dict)
    behind: dict[str, bool] = field(default_factory=dict)

    def worth_it(self, node: onnx.NodeProto) -> bool:
        if node.op_type in _KERNELS:
            return True
        if node.op_type in LOOKED_UP:
            return self._behind_integers(node) and self._before_kernel(node)
        if node.op_type in CLAMPS:
            maker = self.links.makers.get(node.input[0])
            taken_in = maker is not None and (self._kernel(maker) or self._looked_up(maker))
            return taken_in and (self._before_kernel(node) or self._behind_integers(node))
        return node.op_type in _MOVES and self._behind_integers(node)

    def _before_kernel(self, node: onnx.NodeProto) -> bool:
        """Without recursion, and each node once: ways of moves may be longer than Python's stack."""
        waiting = [node]
        while waiting:
            last = waiting[-1]
            if last.output[0] in self.before:
                waiting.pop()
                continue
            readers = [reader for name in last.output for reader in self.links.readers.get(name, ())]
            beside = any(map(self._kernel, readers))
            onward = () if beside else [reader for reader in readers if self._passes(reader)]
            unknown = [reader for reader in onward if reader.output[0] not in self.before]
            if unknown:
                waiting += unknown
            else:
                self.before[last.output[0]] = beside or any(self.before[reader.output[0]] for reader in onward)
        return self.before[node.output[0]]

    def _behind_integers(self, node: onnx.NodeProto) -> bool:
        """One answer for all that are passed on the way."""
        found, way = self.behind, []
        while node.output[0] not in found:
            way.append(node.output[0])
            maker = self.links.makers.get(node.input[0])
            written = maker is not None and maker.op_type not in LOOKED_UP and self._writes(maker)
            if maker is None or written or not self._leads_on(maker):
                found |= dict.fromkeys(way, written)
            else:
                node = maker
        found |= dict.fromkeys(way, found[node.output[0]])
        return found[node.output[0]]

    def _leads_on(self, node: onnx.NodeProto) -> bool:
        return self._passes(node) and (node.op_type not in LOOKED_UP or self._before_kernel(node))

    def _writes(self, node: onnx.NodeProto) -> bool:
        return self._kernel(node) and node.op_type in _WRITES_INTEGERS

    def _kernel(self, node: onnx.NodeProto) -> bool:
        return node.name in self.scope and node.op_type in _KERNELS

    def _looked_up(self, node: onnx.NodeProto) -> bool:
        return node.name in self.scope and node.op_type in LOOKED_UP and self.worth_it(node)

    def _passes(self, node: onnx.NodeProto) -> bool:
        return node.name in self.scope and node.op_type in _MOVES | CLAMPS | LOOKED_UP


def _writes_integers(node: onnx.NodeProto, integers: IntegerNodes) -> bool:
    return node.name in integers.names and node.op_type in _WRITES_INTEGERS | _MOVES | CLAMPS | LOOKED_UP


def _bypass(links: Links, pair: _Pair, integers: frozenset[str]) -> bool:
    """Float readers go around the pair. True when nobody is left who reads it."""
    readers = links.readers[pair.result]
    wanted = [reader for reader in readers if reader.name in integers]
    if pair.result in links.shown:
        maker = links.makers.get(pair.source)
        if wanted or maker is None or len(links.readers[pair.source]) > 1:
            return False
        maker.output[list(maker.output).index(pair.source)] = pair.result
        return True
    for reader in readers:
        if reader.name not in integers:
            for place, name in enumerate(reader.input):
                if name == pair.result:
                    reader.input[place] = pair.source
    return not wanted


def _store_added_biases(model: onnx.ModelProto, integers: IntegerNodes) -> None:
    """The bias that is added to a product is stored as int32, like that of a Gemm.

    onnxruntime makes one Gemm of a MatMul and the Add behind it, and runs that on integers only with such a bias.
    """
    links = Links.of(model.graph)
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in [node for node in model.graph.node if node.op_type == "MatMul" and node.name in integers.names]:
        readers = links.readers[node.output[0]]
        halves = [half for half in map(links.makers.get, node.input) if half is not None and _dequantizes(half)]
        if len(readers) != 1 or readers[0].op_type != "Add" or len(halves) < len(node.input):
            continue
        bias = next((name for name in readers[0].input if name in stored and len(stored[name].dims) == 1), None)
        scales = [stored.get(half.input[1]) for half in halves]
        if bias is not None and None not in scales and halves[1].input[0] in stored:
            _store_bias(model, readers[0], stored[bias], scales)


def _dequantizes(node: onnx.NodeProto) -> bool:
    return bool(node.op_type == "DequantizeLinear")


def _store_bias(model: onnx.ModelProto, add: onnx.NodeProto, bias: onnx.TensorProto, scales: list[Any]) -> None:
    values, left, right = (onnx.numpy_helper.to_array(tensor) for tensor in (bias, *scales))
    scale = (left * right).astype(np.float32)
    quantized = np.rint(values.astype(np.float64) / scale)
    if values.dtype != np.float32 or scale.size not in (1, values.size) or np.abs(quantized).max() > _LARGEST_BIAS:
        return
    names = [f"{add.name}_bias_{part}" for part in ("quantized", "scale", "zero_point", "dequantized")]
    arrays = (quantized.astype(np.int32), scale, np.zeros(scale.shape, np.int32))
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(array, name) for array, name in zip(arrays, names[:3], strict=True)
    )
    model.graph.node.append(
        onnx.helper.make_node("DequantizeLinear", names[:3], names[3:], name=f"{names[0]}_DequantizeLinear", axis=0)
    )
    add.input[list(add.input).index(bias.name)] = names[3]


def _stored_names(model: onnx.ModelProto) -> Iterator[str]:
    """Initializers that something reads."""
    read = {name for node in model.graph.node for name in names_read(node)} | {item.name for item in model.graph.output}
    return (tensor.name for tensor in model.graph.initializer if tensor.name in read)


def _drop_unused(model: onnx.ModelProto, before: set[str]) -> None:
    """Scales and biases that were read `before` and are not any more."""
    drop_named(model.graph.initializer, before - set(_stored_names(model)))
