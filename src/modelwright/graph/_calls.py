"""How large a model gets when its functions are written out, as runtimes do before they run it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from modelwright.graph._bodies import domain_of, subgraphs_of

if TYPE_CHECKING:
    import onnx

_MOST_NODES = 10_000_000
_Name = tuple[str, str, str]


def call_flaw(model: onnx.ModelProto) -> str | None:
    """A function that calls itself, directly or through others, or a graph of more nodes than can be handled."""
    functions = {(domain_of(item.domain), item.name, item.overload): item for item in model.functions}
    calls = {name: [_name(node) for node in _nodes(item.node)] for name, item in functions.items()}
    order = _callees_first(calls)
    if order is None:
        return "a function calls itself"
    sizes: dict[_Name, int] = {}
    for name in order:
        sizes[name] = sum(sizes.get(called, 1) for called in calls[name])
    total = sum(sizes.get(_name(node), 1) for node in _nodes(model.graph.node))
    if total > _MOST_NODES:
        return f"its functions call each other so often that it would have more than {_MOST_NODES:,} nodes"
    return None


def _callees_first(calls: Mapping[_Name, list[_Name]]) -> list[_Name] | None:
    """Every function after those it calls; None when some wait for each other. No recursion: files can be deep."""
    waits = {name: {called for called in called_by if called in calls} for name, called_by in calls.items()}
    callers: dict[_Name, list[_Name]] = {}
    for name, called in waits.items():
        for other in called:
            callers.setdefault(other, []).append(name)
    ready = [name for name, called in waits.items() if not called]
    for name in ready:
        for caller in callers.get(name, ()):
            waits[caller].discard(name)
            if not waits[caller]:
                ready.append(caller)
    return ready if len(ready) == len(calls) else None


def _name(node: onnx.NodeProto) -> _Name:
    return domain_of(node.domain), node.op_type, node.overload


def _nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """These and those of the graphs inside them."""
    pending = [nodes]
    while pending:
        for node in pending.pop():
            yield node
            if node.attribute:
                pending.extend(graph.node for graph in subgraphs_of(node))
