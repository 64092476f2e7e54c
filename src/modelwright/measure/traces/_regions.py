"""Which nodes of the model a fused one stands for: what lies between its inputs and its outputs.

onnxruntime can write down the graph it made. A fused node keeps the names of the tensors it reads and makes, so the
nodes it replaced are those of the model on the way from its outputs back to its inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright.graph import load, work_rank
from modelwright.measure.traces._names import ModelNode, ModelNodes, Named, is_inserted, undecorated

# What onnxruntime puts around a node to change its layout, shape or type; the data is that of the first input.
_PASSES_ON = frozenset({"Reshape", "Transpose", "ReorderInput", "ReorderOutput", "Cast", "Identity"})
_LAYOUT = "_nchwc"


@dataclass(frozen=True)
class _Made:
    """A node of the graph onnxruntime made."""

    name: str
    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def read_regions(made_file: Path, nodes: ModelNodes) -> dict[tuple[str, str], Named]:
    """By (name, operator type), for the nodes of the main graph that are not the model's own."""
    made = [
        _Made(node.name, node.op_type, tuple(node.input), tuple(node.output))
        for node in load(made_file).model.graph.node
    ]
    return regions(made, nodes)


def regions(made: Sequence[_Made], nodes: ModelNodes) -> dict[tuple[str, str], Named]:
    strange = [node for node in made if not nodes.exact(node.name, node.op_type, None) and node.name]
    own = (nodes.exact(node.name, node.op_type, None) for node in made)
    claimed = {node for node in own if node is not None}
    same = _Aliases(strange, nodes)
    found: dict[tuple[str, str], Named] = {}
    for node in strange:
        if same.passes_on(node):
            found[node.name, node.op_type] = Named((), "inserted")
            continue
        region = list(_between(node, same, nodes, claimed))
        claimed.update(region)
        labels = tuple(item.label for item in sorted(region, key=lambda item: (work_rank(item.op_type), item.index)))
        found[node.name, node.op_type] = Named(labels, "fused") if labels else nodes.named(node.name, node.op_type)
    return found


class _Aliases:
    """Tensors onnxruntime named itself, by the model's tensor that has the same content."""

    def __init__(self, strange: Sequence[_Made], nodes: ModelNodes) -> None:
        self._nodes = nodes
        self._same: dict[str, str] = {}
        for node in strange:
            maker = nodes.anchor(node.name) if _LAYOUT in node.name else None
            if maker is not None and node.outputs[0] not in nodes.tensors:
                self._same[node.outputs[0]] = _named_after(node, maker)
        for node in reversed(strange):
            if self.passes_on(node) and node.inputs[0] not in nodes.tensors:
                self._same.setdefault(node.inputs[0], self.of(node.outputs[0]))
        for node in strange:
            if self.passes_on(node) and node.outputs[0] not in nodes.tensors:
                self._same.setdefault(node.outputs[0], self.of(node.inputs[0]))

    def passes_on(self, node: _Made) -> bool:
        return node.op_type in _PASSES_ON and (is_inserted(node.name) or self._nodes.anchor(node.name) is None)

    def of(self, tensor: str) -> str:
        return self._same.get(tensor, tensor)


def _between(node: _Made, same: _Aliases, nodes: ModelNodes, claimed: set[ModelNode]) -> Iterator[ModelNode]:
    borders = {same.of(name) for name in node.inputs}
    pending = [same.of(name) for name in node.outputs if name]
    seen: set[ModelNode] = set()
    while pending:
        maker = nodes.maker.get(pending.pop())
        if maker is None or maker in seen or maker in claimed:
            continue
        seen.add(maker)
        yield maker
        pending.extend(name for name in maker.inputs if name and name not in borders)


def _named_after(node: _Made, maker: ModelNode) -> str:
    names = undecorated(node.name)
    return next((tensor for tensor in maker.outputs if tensor in names), maker.outputs[0])
