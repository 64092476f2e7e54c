"""Nodes in the order of their data; the quantizer and the float16 converter append theirs at the end."""

from __future__ import annotations

import heapq
from collections.abc import Set
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.graph import names_read

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")


def sort_nodes(graph: onnx.GraphProto) -> None:
    """In place: first what reads no other node, then a stable topological order.

    onnxruntime keeps the nodes that are ready in a list sorted by their place, and goes through half of it for each one
    that becomes ready, in every pass. Halves of pairs on weights are ready from the start; listed first they are gone
    when the others come.
    """
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    needs = [{makers[name] for name in names_read(node) if name in makers} for node in nodes]
    users: list[list[int]] = [[] for _ in nodes]
    for index, found in enumerate(needs):
        for maker in found:
            users[maker].append(index)
    waiting = [len(found) for found in needs]
    ready: list[int] = []
    del graph.node[:]

    def take(index: int) -> None:
        graph.node.append(nodes[index])
        for user in users[index]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, user)

    for index in [index for index, count in enumerate(waiting) if not count]:
        take(index)
    while ready:
        take(heapq.heappop(ready))


def move_to_makers(graph: onnx.GraphProto, first: int) -> None:
    """Nodes from `first` on move to behind the last node they read from; the others keep their order.

    onnxruntime keeps nodes that are ready in a list sorted by their place, and goes through all of it for each node
    that becomes ready. What only looks at a tensor, listed last, waits there until the end: that is quadratic.
    """
    places: dict[str, int] = {}
    found = []
    for index, node in enumerate(graph.node):
        place = index if index < first else max((places.get(name, -1) for name in names_read(node)), default=-1)
        places |= dict.fromkeys(node.output, place)
        found.append((place, index))
    keys = iter(found)
    graph.node.sort(key=lambda _: next(keys))


def drop_named(listed: Any, names: Set[str]) -> None:
    """Remove from a repeated field all that carries one of these names. The rest is not copied: it may be large."""
    for index in reversed(range(len(listed)) if names else ()):
        if listed[index].name in names:
            del listed[index]
