"""How far an integer input may go, read from the tables it indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.graph import Graph

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

# Operators that hand indices on unchanged, and ones that hand a table on with the same rows.
_SAME_INDICES = frozenset({"Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Transpose", "Expand"})
_SAME_ROWS = frozenset({"DequantizeLinear", "Cast", "Identity"})
# com.microsoft fusions: position of the indices → position of the table.
_FUSED = {"EmbedLayerNormalization": {0: 2, 1: 4}, "QEmbedLayerNormalization": {0: 2, 1: 4}}


def index_bound(graph: Graph, name: str) -> int | None:
    """The number of rows of the smallest table that graph input `name` indexes; None when it indexes none."""
    tables = _Tables(graph)
    rows = [count for count in _rows(tables, name) if count is not None]
    return min(rows, default=None)


class _Tables:
    """The main graph by name: who uses a value, who makes it, how many rows a stored one has."""

    def __init__(self, graph: Graph) -> None:
        main = graph.model.graph
        self.users: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
        self.makers: dict[str, onnx.NodeProto] = {}
        self.stored = {tensor.name: int(tensor.dims[0]) for tensor in main.initializer if tensor.dims}
        for node in main.node:
            for position, value in enumerate(node.input):
                self.users.setdefault(value, []).append((node, position))
            self.makers.update(dict.fromkeys(node.output, node))

    def rows(self, value: str) -> int | None:
        """Rows of a stored table, looking through what leaves the first axis alone."""
        while value not in self.stored:
            maker = self.makers.get(value)
            if maker is None:
                return None
            if maker.op_type == "Constant":
                return next((int(a.t.dims[0]) for a in maker.attribute if a.name == "value" and a.t.dims), None)
            if maker.op_type not in _SAME_ROWS:
                return None
            value = maker.input[0]
        return self.stored[value]


def _rows(tables: _Tables, name: str) -> Iterator[int | None]:
    pending, seen = [name], {name}
    while pending:
        for node, position in tables.users.get(pending.pop(), []):
            if node.op_type == "Gather" and position == 1 and _axis(node) == 0:
                yield tables.rows(node.input[0])
            elif node.op_type in _FUSED and position in _FUSED[node.op_type]:
                yield tables.rows(node.input[_FUSED[node.op_type][position]])
            elif node.op_type in _SAME_INDICES and position == 0 and node.output[0] not in seen:
                seen.add(node.output[0])
                pending.append(node.output[0])


def _axis(node: onnx.NodeProto) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
