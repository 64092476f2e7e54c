"""Every list of nodes in a model: the main graph, the subgraphs inside attributes, the local functions."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy_messages

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy_messages()


@dataclass(frozen=True, eq=False)
class Body:
    """One scope of names. A subgraph also sees the names of its `parent`."""

    kind: Literal["graph", "subgraph", "function"]
    parent: Body | None
    nodes: tuple[onnx.NodeProto, ...]
    initializers: tuple[onnx.TensorProto, ...]
    sparse_initializers: tuple[onnx.SparseTensorProto, ...]
    attribute_tensors: tuple[onnx.TensorProto, ...]

    @functools.cached_property
    def made(self) -> tuple[str, ...]:
        """The names of what its nodes write."""
        return tuple([name for node in self.nodes for name in node.output if name])

    def tensors(self) -> Iterator[onnx.TensorProto]:
        """Every stored tensor of this body; a sparse one gives its values and its indices."""
        yield from self.initializers
        for sparse in self.sparse_initializers:
            yield sparse.values
            yield sparse.indices
        yield from self.attribute_tensors


def bodies(model: onnx.ModelProto) -> tuple[Body, ...]:
    """The main graph first, then the functions, then the subgraphs; parents before children."""
    found: list[Body] = []
    pending: list[tuple[onnx.GraphProto | onnx.FunctionProto, Body | None]] = [(model.graph, None)]
    pending += [(function, None) for function in model.functions]
    for proto, parent in pending:
        body, subgraphs = _read(proto, parent)
        found.append(body)
        pending.extend((subgraph, body) for subgraph in subgraphs)
    return tuple(found)


def attribute_kind(attribute: onnx.AttributeProto) -> int:
    """The attribute's type; the oldest models leave it out, then the filled field tells."""
    if attribute.type:
        return attribute.type
    for name, kind in _FIELD_KINDS:
        field = getattr(attribute, name)
        filled = len(field) if name in _REPEATED else attribute.HasField(name)
        if filled:
            return int(onnx.AttributeProto.AttributeType.Value(kind))
    return 0


def subgraphs_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs in the node's own attributes."""
    if not node.attribute:
        return []
    return [graph for item in node.attribute for graph in _graphs_of(item, attribute_kind(item))]


def domain_of(name: str) -> str:
    """`ai.onnx` is the long spelling of the default domain."""
    return "" if name == "ai.onnx" else name


# Of AttributeProto.AttributeType: what looks at every attribute cannot ask the enumeration each time.
_TENSOR, _GRAPH, _TENSORS, _GRAPHS, _SPARSE_TENSOR, _SPARSE_TENSORS = 4, 5, 9, 10, 11, 12
_HOLDING = frozenset({_TENSOR, _GRAPH, _TENSORS, _GRAPHS, _SPARSE_TENSOR, _SPARSE_TENSORS})
_REPEATED = frozenset({"floats", "ints", "strings", "tensors", "graphs", "sparse_tensors", "type_protos"})
_FIELD_KINDS = (
    ("f", "FLOAT"),
    ("i", "INT"),
    ("s", "STRING"),
    ("t", "TENSOR"),
    ("g", "GRAPH"),
    ("sparse_tensor", "SPARSE_TENSOR"),
    ("tp", "TYPE_PROTO"),
    ("floats", "FLOATS"),
    ("ints", "INTS"),
    ("strings", "STRINGS"),
    ("tensors", "TENSORS"),
    ("graphs", "GRAPHS"),
    ("sparse_tensors", "SPARSE_TENSORS"),
    ("type_protos", "TYPE_PROTOS"),
)


def _read(proto: onnx.GraphProto | onnx.FunctionProto, parent: Body | None) -> tuple[Body, list[onnx.GraphProto]]:
    nodes = tuple(proto.node[:])
    tensors: list[onnx.TensorProto] = []
    subgraphs: list[onnx.GraphProto] = []
    for node in nodes:
        # Asking is cheaper than an empty loop, and most nodes have none.
        for attribute in node.attribute if node.attribute else ():
            holds = attribute.type or attribute_kind(attribute)
            if holds in _HOLDING:
                tensors += _tensors_of(attribute, holds)
                subgraphs += _graphs_of(attribute, holds)
    if isinstance(proto, onnx.FunctionProto):
        return Body("function", None, nodes, (), (), tuple(tensors)), subgraphs
    kind: Literal["graph", "subgraph"] = "subgraph" if parent else "graph"
    initializers, sparse = tuple(proto.initializer[:]), tuple(proto.sparse_initializer)
    return Body(kind, parent, nodes, initializers, sparse, tuple(tensors)), subgraphs


def _tensors_of(attribute: onnx.AttributeProto, kind: int) -> Iterator[onnx.TensorProto]:
    if kind == _TENSOR:
        yield attribute.t
    elif kind == _TENSORS:
        yield from attribute.tensors
    elif kind in (_SPARSE_TENSOR, _SPARSE_TENSORS):
        every = [attribute.sparse_tensor] if kind == _SPARSE_TENSOR else attribute.sparse_tensors
        for sparse in every:
            yield sparse.values
            yield sparse.indices


def _graphs_of(attribute: onnx.AttributeProto, kind: int) -> Iterable[onnx.GraphProto]:
    if kind == _GRAPH:
        return (attribute.g,)
    return attribute.graphs if kind == _GRAPHS else ()
