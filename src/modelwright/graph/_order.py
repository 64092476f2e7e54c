"""Nodes in an order where every value exists before it is used, without recursion."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright.errors import InputError

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Wiring:
    """What one node reads and writes. `captured` are outer names its subgraphs use."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    captured: tuple[str, ...]


def stripped(names: Sequence[str]) -> tuple[str, ...]:
    """Trailing empty names mean the same as no names."""
    kept = list(names)
    while kept and not kept[-1]:
        kept.pop()
    return tuple(kept)


def topological(wirings: Sequence[Wiring], known: Container[str], where: str) -> list[int]:
    """Indices of the nodes, each after the producers of what it reads. `known` holds the other names."""
    _refuse_two_writers(wirings, where)
    written = {name for wiring in wirings for name in wiring.outputs if name}
    order: list[int] = []
    done: set[str] = set()
    waiting: dict[str, list[int]] = {}
    missing = [0] * len(wirings)
    ready: list[int] = []
    for index, wiring in enumerate(wirings):
        needs = {name for name in (*wiring.inputs, *wiring.captured) if name and name not in done}
        for name in needs:
            if name in written:
                waiting.setdefault(name, []).append(index)
                missing[index] += 1
            elif name not in known:
                raise undefined(name, where)
        if not missing[index]:
            ready.append(index)
        _release(ready, wirings, order, done, waiting, missing)
    if len(order) < len(wirings):
        raise InputError(
            f"{where} has a cycle",
            cause=f"{len(wirings) - len(order)} of its nodes wait for each other's outputs",
            fix="Export the model again; no runtime can run this graph.",
        )
    return order


def _release(
    ready: list[int],
    wirings: Sequence[Wiring],
    order: list[int],
    done: set[str],
    waiting: dict[str, list[int]],
    missing: list[int],
) -> None:
    while ready:
        index = ready.pop()
        order.append(index)
        for name in wirings[index].outputs:
            done.add(name)
            for consumer in waiting.pop(name, ()):
                missing[consumer] -= 1
                if not missing[consumer]:
                    ready.append(consumer)


def _refuse_two_writers(wirings: Sequence[Wiring], where: str) -> None:
    seen: set[str] = set()
    for wiring in wirings:
        for name in wiring.outputs:
            if name in seen:
                raise InputError(
                    f"{where} is not a valid graph",
                    cause=f"two nodes write the value '{name}'",
                    fix="Export the model again; were two files joined into one?",
                )
            if name:
                seen.add(name)


def undefined(name: str, where: str) -> InputError:
    return InputError(
        f"{where} is not a valid graph",
        cause=f"the value '{name}' is used, but nothing produces it",
        fix="Export the model again, or copy it again from where it works.",
    )


def captured_names(graph: onnx.GraphProto, subgraphs: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Outer names a subgraph reads; `subgraphs` holds what the graphs inside its own nodes capture."""
    local = {value.name for value in graph.input}
    local.update(tensor.name for tensor in graph.initializer)
    local.update(sparse.values.name for sparse in graph.sparse_initializer)
    used: dict[str, None] = {}
    for node in graph.node:
        local.update(node.output)
        used.update(dict.fromkeys(node.input))
    for names in subgraphs:
        used.update(dict.fromkeys(names))
    used.update(dict.fromkeys(value.name for value in graph.output))
    return tuple(name for name in used if name and name not in local)
