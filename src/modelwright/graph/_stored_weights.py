"""The stored tensors by size, with the node that reads each."""

from __future__ import annotations

from modelwright._dataclass import dataclass
from modelwright.graph._load import Graph
from modelwright.graph._types import dtype_name, stored_bytes


@dataclass(frozen=True)
class StoredWeight:
    """`node` is the first that reads it, by its name or its operator; None where nothing does."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int | None
    node: str | None


def stored_weights(graph: Graph) -> tuple[StoredWeight, ...]:
    """All that have a name, the largest first."""
    found = []
    for body in graph.bodies:
        readers = {name: node.name or node.op_type for node in reversed(body.nodes) for name in node.input}
        for tensor in body.initializers:
            size = stored_bytes(tensor.data_type, tensor.dims)
            kind = dtype_name(tensor.data_type)
            found.append(StoredWeight(tensor.name, kind, tuple(tensor.dims), size, readers.get(tensor.name)))
    return tuple(sorted(found, key=lambda item: (-(item.size_bytes or 0), item.name)))
