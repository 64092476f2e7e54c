"""The order of nodes in which least is held: what is made of stored tensors alone is made right before it is read."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx


def names_read(node: onnx.NodeProto) -> Iterator[str]:
    """Every name the node may read, also from inside its subgraphs."""
    yield from node.input
    for attribute in node.attribute:
        for subgraph in (attribute.g, *attribute.graphs):
            for inner in subgraph.node:
                yield from names_read(inner)
            yield from (value.name for value in subgraph.output)


def late(nodes: Sequence[onnx.NodeProto], stored: Container[str]) -> list[onnx.NodeProto]:
    """Nodes in an order that is right, with those that make floats of stored weights as late as they may be."""
    waiting: dict[str, onnx.NodeProto] = {}
    found: list[onnx.NodeProto] = []
    for node in nodes:
        read = [name for name in names_read(node) if name]
        if any(node.output) and read and all(name in stored or name in waiting for name in read):
            waiting |= {name: node for name in node.output if name}
        else:
            _take(read, waiting, found)
            found.append(node)
    _take(list(waiting), waiting, found)
    return found


def _take(names: list[str], waiting: dict[str, onnx.NodeProto], found: list[onnx.NodeProto]) -> None:
    """Those that make these names, each behind what it reads itself."""
    pending = [waiting[name] for name in reversed(names) if name in waiting]
    while pending:
        node = pending[-1]
        before = [waiting[name] for name in names_read(node) if name in waiting]
        if before:
            pending += before
            continue
        pending.pop()
        if sum(waiting.pop(name, None) is not None for name in node.output):
            found.append(node)
