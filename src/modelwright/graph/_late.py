"""The order of nodes in which least is held: what is made of stored tensors alone is made right before it is read."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING

from modelwright.graph._bodies import subgraphs_of

if TYPE_CHECKING:
    import onnx


def names_read(node: onnx.NodeProto) -> Iterator[str]:
    """Every name the node reads, from inside its subgraphs too."""
    yield from (name for name in node.input if name)
    for subgraph in subgraphs_of(node):
        inside = {name for inner in subgraph.node for name in inner.output}
        inside |= {item.name for item in (*subgraph.input, *subgraph.initializer)}
        for inner in subgraph.node:
            yield from (name for name in names_read(inner) if name not in inside)
        yield from (item.name for item in subgraph.output if item.name not in inside)


def late(nodes: Sequence[onnx.NodeProto], stored: Container[str]) -> list[onnx.NodeProto]:
    """Nodes in an order that is right, with those that make floats of stored weights as late as they may be."""
    waiting: dict[str, onnx.NodeProto] = {}
    found: list[onnx.NodeProto] = []
    for node in nodes:
        read = list(names_read(node))
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
