"""One SHA-256 for what a model computes, whatever its file looks like.

In the fingerprint: operators with domain and overload, attributes as written (their order is not), wiring,
weights by element type, shape and content, the opset of every used domain, names, types and order of the
graph's inputs and outputs, subgraphs, local functions, and how often equal nodes and weights occur.

Not in it: names of nodes and inner values, node order beyond what wiring demands, doc strings, metadata,
producer, ir_version, value_info and declared types of subgraph inputs and outputs, quantization annotations,
training info, device configurations, unused opset imports, order and place of weights (inline, typed fields
or external).

As written means: an attribute that spells out its default differs from one left out, and a Constant node
differs from an initializer with the same content.

How: each node gets a digest of everything above it (its operator and what its inputs were made of), then,
from the outputs back, a label that adds everything below it (who reads it, at which position). The bag of all
labels tells two equal nodes from one shared node.
"""

from __future__ import annotations

import struct
from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.graph._bodies import attribute_kind, domain_of, subgraphs_of
from modelwright.graph._digests import TensorDigest, TensorDigests, bag, combine, type_digest
from modelwright.graph._external import external_data
from modelwright.graph._load import Graph
from modelwright.graph._order import Wiring, captured_names, stripped, topological, undefined

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

_VERSION = b"modelwright graph 1"
_FIRST_IR_WITH_PLAIN_INITIALIZERS = 4
_ABSENT = combine(b"absent")
_TELLING = frozenset({7, 8, 9})  # INT64, STRING and BOOL of onnx


def fingerprint(graph: Graph) -> str:
    """The canonical fingerprint (64 hex digits). Reads all weights once."""
    external_data(graph)
    with TensorDigests(graph) as tensors:
        return _Canon(tensors, graph.path.name).model(graph.model).hex()


def structure(graph: Graph) -> str:
    """The same without the numbers that training or calibration gives: those count by type and shape. Whole numbers of
    64 bits, truth values and texts count as they are, because they say how a graph works."""
    external_data(graph)
    with TensorDigests(graph) as tensors:

        def by_shape(tensor: onnx.TensorProto) -> bytes:
            if tensor.data_type in _TELLING:
                return tensors(tensor)
            return combine(b"%d" % tensor.data_type, *(b"%d" % size for size in tensor.dims))

        return _Canon(by_shape, graph.path.name).model(graph.model).hex()


@dataclass(frozen=True)
class _Labels:
    """The digests of one body: its nodes, the values nothing in it produces, and every value."""

    nodes: tuple[bytes, ...]
    sources: Mapping[str, bytes]
    values: Mapping[str, bytes]


@dataclass(frozen=True)
class _Scope:
    """One body, ready to be hashed: its nodes, the values it starts from, and the outer values it sees."""

    nodes: Sequence[onnx.NodeProto]
    sources: Mapping[str, bytes]
    outputs: tuple[str, ...]
    outer: MutableMapping[str, bytes]
    depth: int


class _Canon:
    def __init__(self, tensor: TensorDigest, where: str) -> None:
        self._tensor = tensor
        self._where = where

    def model(self, model: onnx.ModelProto) -> bytes:
        graph = model.graph
        weights = self._weights(graph)
        listed = model.ir_version >= _FIRST_IR_WITH_PLAIN_INITIALIZERS
        # Before IR 4 every weight had to be listed as an input too; there that says nothing.
        inputs = [value for value in graph.input if listed or value.name not in weights]
        sources = weights | {
            value.name: combine(b"input", value.name.encode(), weights.get(value.name, b"")) for value in inputs
        }
        outputs = tuple(value.name for value in graph.output)
        labels = self._labels(_Scope(graph.node, sources, outputs, {}, 0))
        return combine(
            _VERSION,
            _opsets(model.opset_import, _used_domains(graph.node)),
            bag(map(self._function, model.functions)),
            combine(*(_signature(value, labels.sources) for value in inputs)),
            combine(*(_signature(value, labels.values) for value in graph.output)),
            bag(labels.nodes),
            bag(labels.sources[name] for name in weights),
        )

    def _function(self, function: onnx.FunctionProto) -> bytes:
        sources = {name: combine(b"parameter", b"%d" % i) for i, name in enumerate(function.input)}
        labels = self._labels(_Scope(function.node, sources, tuple(function.output), {}, 0))
        name = "\0".join((domain_of(function.domain), function.name, function.overload))
        return combine(
            name.encode(),
            _opsets(function.opset_import, _used_domains(function.node)),
            bag(name.encode() for name in function.attribute),
            self._attributes(function.attribute_proto, {}, 0),
            *(labels.sources[name] for name in function.input),
            combine(*(labels.values[name] for name in function.output)),
            bag(labels.nodes),
        )

    def _subgraph(self, graph: onnx.GraphProto, outer: MutableMapping[str, bytes], depth: int) -> bytes:
        weights = self._weights(graph)
        formal = {value.name: combine(b"formal", b"%d.%d" % (depth, i)) for i, value in enumerate(graph.input)}
        outputs = tuple(value.name for value in graph.output)
        labels = self._labels(_Scope(graph.node, weights | formal, outputs, outer, depth))
        return combine(
            combine(*(labels.sources[name] for name in formal)),
            combine(*(labels.values[name] for name in outputs)),
            bag(labels.nodes),
            bag(labels.sources[name] for name in weights),
        )

    def _labels(self, scope: _Scope) -> _Labels:
        wirings = [_wiring(node) for node in scope.nodes]
        # Writes land in the first map, so an inner value hides nothing from the outer body.
        values = ChainMap(dict(scope.sources), scope.outer)
        order = topological(wirings, values, self._where)
        above = [b""] * len(wirings)
        for index in order:
            above[index] = self._node(scope.nodes[index], wirings[index], values, scope.depth)
            for position, name in enumerate(wirings[index].outputs):
                if name:
                    values[name] = combine(above[index], b"%d" % position)
        for name in scope.outputs:
            if name not in values:
                raise undefined(name, self._where)
        return _from_below(scope, wirings, order, above, values)

    def _node(self, node: onnx.NodeProto, wiring: Wiring, visible: MutableMapping[str, bytes], depth: int) -> bytes:
        operator = "\0".join((domain_of(node.domain), node.op_type, node.overload))
        written = bytes(bool(name) for name in wiring.outputs)
        attributes = self._attributes(node.attribute, visible, depth) if node.attribute else b""
        inputs = [visible[name] if name else _ABSENT for name in wiring.inputs]
        return combine(operator.encode(), written, attributes, *inputs)

    def _attributes(
        self, attributes: Iterable[onnx.AttributeProto], visible: MutableMapping[str, bytes], depth: int
    ) -> bytes:
        return bag(
            combine(
                item.name.encode(),
                item.ref_attr_name.encode(),
                b"%d" % attribute_kind(item),
                self._value(item, visible, depth),
            )
            for item in attributes
        )

    def _value(self, item: onnx.AttributeProto, visible: MutableMapping[str, bytes], depth: int) -> bytes:
        kinds, kind = onnx.AttributeProto, attribute_kind(item)
        plain = _plain_value(item, kind)
        if plain is not None:
            return plain
        if kind in (kinds.TENSOR, kinds.TENSORS):
            return combine(*map(self._tensor, [item.t] if kind == kinds.TENSOR else item.tensors))
        if kind in (kinds.GRAPH, kinds.GRAPHS):
            graphs = [item.g] if kind == kinds.GRAPH else item.graphs
            return combine(*(self._subgraph(graph, visible, depth + 1) for graph in graphs))
        if kind in (kinds.SPARSE_TENSOR, kinds.SPARSE_TENSORS):
            every = [item.sparse_tensor] if kind == kinds.SPARSE_TENSOR else item.sparse_tensors
            return combine(*map(self._sparse, every))
        if kind in (kinds.TYPE_PROTO, kinds.TYPE_PROTOS):
            return combine(*map(type_digest, [item.tp] if kind == kinds.TYPE_PROTO else item.type_protos))
        return b""

    def _weights(self, graph: onnx.GraphProto) -> dict[str, bytes]:
        dense = {tensor.name: combine(b"weight", self._tensor(tensor)) for tensor in graph.initializer}
        sparse = {item.values.name: self._sparse(item) for item in graph.sparse_initializer}
        return dense | sparse

    def _sparse(self, sparse: onnx.SparseTensorProto) -> bytes:
        dims = struct.pack(f"<{len(sparse.dims)}q", *sparse.dims)
        return combine(b"sparse", dims, self._tensor(sparse.values), self._tensor(sparse.indices))


def _from_below(
    scope: _Scope,
    wirings: Sequence[Wiring],
    order: Sequence[int],
    above: Sequence[bytes],
    values: Mapping[str, bytes],
) -> _Labels:
    """Add to each digest who reads the value and where, from the outputs back to the sources."""
    readers: dict[str, list[bytes]] = {}
    for position, name in enumerate(scope.outputs):
        readers.setdefault(name, []).append(b"output %d" % position)
    labels = [b""] * len(wirings)
    for index in reversed(order):
        wiring = wirings[index]
        label = combine(above[index], *(bag(readers.get(name, ())) for name in wiring.outputs))
        labels[index] = label
        for position, name in enumerate(wiring.inputs):
            readers.setdefault(name, []).append(b"%d " % position + label)
        for name in wiring.captured:
            readers.setdefault(name, []).append(b"captured " + label)
    sources = {name: combine(value, bag(readers.get(name, ()))) for name, value in scope.sources.items()}
    return _Labels(tuple(labels), sources, values)


def _wiring(node: onnx.NodeProto) -> Wiring:
    captured: dict[str, None] = {}
    if node.attribute:
        for graph in subgraphs_of(node):
            captured.update(dict.fromkeys(_captured(graph)))
    return Wiring(stripped(node.input), stripped(node.output), tuple(captured))


def _captured(graph: onnx.GraphProto) -> tuple[str, ...]:
    """Recursion follows the nesting of subgraphs, which protobuf itself limits to a few dozen."""
    inner = [_captured(subgraph) for node in graph.node for subgraph in subgraphs_of(node)]
    return captured_names(graph, inner)


def _plain_value(item: onnx.AttributeProto, kind: int) -> bytes | None:
    kinds = onnx.AttributeProto
    if kind in (kinds.INT, kinds.INTS):
        numbers = [item.i] if kind == kinds.INT else item.ints
        return struct.pack(f"<{len(numbers)}q", *numbers)
    if kind in (kinds.FLOAT, kinds.FLOATS):
        floats = [item.f] if kind == kinds.FLOAT else item.floats
        return struct.pack(f"<{len(floats)}f", *floats)
    if kind in (kinds.STRING, kinds.STRINGS):
        return combine(*([item.s] if kind == kinds.STRING else item.strings))
    return None


def _used_domains(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    used: set[str] = set()
    pending = [nodes]
    while pending:
        for node in pending.pop():
            used.add(domain_of(node.domain))
            if node.attribute:
                pending.extend(graph.node for graph in subgraphs_of(node))
    return used


def _opsets(imports: Iterable[onnx.OperatorSetIdProto], used: set[str]) -> bytes:
    pairs = {(domain_of(item.domain), item.version) for item in imports}
    return bag(b"%d %s" % (version, domain.encode()) for domain, version in pairs if domain in used)


def _signature(value: onnx.ValueInfoProto, digests: Mapping[str, bytes]) -> bytes:
    return combine(value.name.encode(), type_digest(value.type), digests[value.name])
