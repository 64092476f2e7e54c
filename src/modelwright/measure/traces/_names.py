"""From the names of the graph that ran to the nodes of the model as given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright.graph import Graph, work_rank
from modelwright.measure.traces._types import Origin

if TYPE_CHECKING:
    import onnx

# How onnxruntime decorates the name of the node a fusion starts from.
_DECORATIONS = (
    re.compile(r"^fused "),
    re.compile(r"(?:_token_\d+)+$"),
    re.compile(r"/[A-Za-z0-9]*Fusion[A-Za-z0-9]*/?$"),
    re.compile(r"_(?:nchwc|transformed|quant)$"),
)
# A node in this layout is named after the tensor it makes.
_LAYOUT = re.compile(r"_nchwc(?:_token_\d+)*$")
_TYPE = re.compile(r"^([A-Z][A-Za-z0-9]*?)(?:_\d+)?$")
# Nodes onnxruntime adds by itself, by the names it gives them.
_INSERTED = re.compile(
    r"^(?:Transpose|Reorder(?:In|Out)put|gemm_(?:in|out)put_reshape|InsertedPrecisionFreeCast|InsertedCast"
    r"|Memcpy(?:To|From)Host|QuantizeLinear|DequantizeLinear)(?:[_/].*)?$"
)
_FOLDED = "Constant"


@dataclass(frozen=True)
class ModelNode:
    """A node of the model. `label` is its name, or its type and first output where it has none."""

    label: str
    name: str
    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    index: int


@dataclass(frozen=True)
class Named:
    """The nodes an operator stands for, the one that does the work first. `op_type` is the model's for a single one."""

    onnx_nodes: tuple[str, ...]
    origin: Origin
    op_type: str | None = None


class ModelNodes:
    """The nodes of a model by name, by tensor, and by place."""

    def __init__(self, graph: Graph) -> None:
        scopes = [tuple(_nodes(body.nodes)) for body in graph.bodies if body.kind in ("graph", "subgraph")]
        self.top = scopes[0]
        self._named: dict[str, ModelNode | None] = {}
        for node in (node for scope in scopes for node in scope if node.name):
            # Two nodes of one name: neither can be told from the other.
            self._named[node.name] = None if node.name in self._named else node
        self._scopes = scopes
        self.maker = {tensor: node for node in self.top for tensor in node.outputs if tensor}
        self.tensors = frozenset(self.maker) | {tensor for node in self.top for tensor in node.inputs if tensor}

    def exact(self, name: str, op_type: str, index: int | None) -> ModelNode | None:
        """The node of this name and type; onnxruntime calls a nameless one by type and place."""
        found = self._named.get(name)
        if found is not None and found.op_type == op_type:
            return found
        if index is None or name != f"{op_type}_{index}":
            return None
        candidates = [
            node
            for scope in self._scopes
            for node in scope
            if node.index == index and node.op_type == op_type and not node.name
        ]
        return candidates[0] if len(candidates) == 1 else None

    def by_name(self, name: str) -> ModelNode | None:
        return self._named.get(name)

    def named(self, name: str, op_type: str, index: int | None = None) -> Named:
        """What the name alone tells."""
        found = self.exact(name, op_type, index)
        if found is not None:
            return Named((found.label,), "model", found.op_type)
        anchor = self.anchor(name)
        if anchor is not None:
            kept = anchor.op_type == op_type
            return Named((anchor.label,), "model" if kept else "fused", op_type if kept else None)
        if _INSERTED.match(name):
            return Named((), "inserted")
        return Named((), "unresolved")

    def anchor(self, name: str) -> ModelNode | None:
        """The node behind a decorated name, or the maker of the tensor it is named after."""
        bare = undecorated(name)
        found = next((self._named[item] for item in bare if self._named.get(item)), None)
        if found is None and _LAYOUT.search(name):
            found = next((self.maker[item] for item in bare if item in self.maker), None)
        return found

    def sources(self, names: Iterable[str]) -> Named:
        """Several runtime names that became one operator of an EP."""
        found = [self.named(name, "") for name in names]
        nodes = tuple(dict.fromkeys(node for item in found for node in item.onnx_nodes))
        if len(nodes) == 1:
            node = self._named.get(nodes[0])
            return Named(nodes, "model", node.op_type if node else None)
        if nodes:
            return Named(tuple(sorted(nodes, key=self._rank)), "fused")
        inserted = bool(found) and all(item.origin == "inserted" for item in found)
        return Named((), "inserted" if inserted else "unresolved")

    def _rank(self, label: str) -> int:
        node = self._named.get(label)
        return work_rank(node.op_type if node else label.partition("(")[0])


def is_inserted(name: str) -> bool:
    """Whether onnxruntime gives this name to nodes of its own."""
    return _INSERTED.match(name) is not None


def type_in_name(name: str) -> str | None:
    """Exporters end names with the operator's type: `/layer1/conv1/Conv_3`."""
    found = _TYPE.match(undecorated(name)[-1].rpartition("/")[2])
    return found[1] if found else None


def undecorated(name: str) -> list[str]:
    """The name, and what is left of it as decorations come off, the outermost first."""
    found = [name]
    while True:
        bare = found[-1]
        for decoration in _DECORATIONS:
            bare = decoration.sub("", bare)
        if bare == found[-1]:
            return found
        found.append(bare)


def _nodes(nodes: Sequence[onnx.NodeProto]) -> Iterable[ModelNode]:
    """onnxruntime turns Constant nodes into weights before it counts."""
    kept = (node for node in nodes if node.op_type != _FOLDED)
    for index, node in enumerate(kept):
        first = next((name for name in node.output if name), "")
        label = node.name or f"{node.op_type}({first})"
        yield ModelNode(label, node.name, node.op_type, tuple(node.input), tuple(node.output), index)
