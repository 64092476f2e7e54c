"""A graph of any size as at most so many boxes as can be read, without a cycle among them.

Nodes that share a key become one box where they hang together. A node's level is how often the key changes at most on
the way to it, so arrows between boxes only lead to higher levels, whatever the key is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from graphlib import TopologicalSorter

from modelwright._dataclass import dataclass
from modelwright.targets import PlacedNode

MOST_BOXES = 120
_FEWEST, _PIECES, _DEEPEST = 5, 40, 8

_Key = Callable[[int], Hashable]


@dataclass(frozen=True)
class Block:
    """Nodes by their places; `scope` is the part of their names that they share, where names have parts."""

    nodes: tuple[int, ...]
    scope: str


@dataclass(frozen=True)
class Blocks:
    blocks: tuple[Block, ...]
    arrows: tuple[tuple[int, int], ...]


def collapse(nodes: Sequence[PlacedNode], apart: frozenset[int]) -> Blocks:
    """The finest view with few enough boxes; nodes that are `apart` keep a box of their own as long as possible."""
    order = _order(nodes)
    if len(nodes) <= MOST_BOXES:
        return _view(nodes, [(place,) for place in order])
    return _view(nodes, next(_groupings(nodes, order, apart)))


def _groupings(
    nodes: Sequence[PlacedNode], order: Sequence[int], apart: frozenset[int]
) -> Iterator[Sequence[tuple[int, ...]]]:
    """Those with few enough boxes, the finest first; pieces of the order itself always have."""
    piece = {place: number * _PIECES // len(order) for number, place in enumerate(order)}
    scopes = _scopes(nodes, order)
    for depth in range(_DEEPEST, 0, -1):
        found = _groups(nodes, order, partial(_in_scope, scopes, depth, apart))
        if _FEWEST <= len(found) <= MOST_BOXES:
            yield found
    keys: tuple[_Key, ...] = (
        lambda place: (piece[place], place in apart and place),
        lambda place: place in apart and place,
        lambda place: piece[place],
        lambda place: None,
    )
    for key in keys:
        found = _groups(nodes, order, key)
        if len(found) <= MOST_BOXES:
            yield found
    size = -(-len(order) // _PIECES)
    yield [tuple(order[start : start + size]) for start in range(0, len(order), size)]


def _in_scope(scopes: Sequence[Sequence[str]], depth: int, apart: frozenset[int], place: int) -> Hashable:
    return tuple(scopes[place][:depth]), place in apart and place


def _order(nodes: Sequence[PlacedNode]) -> list[int]:
    """Makers before readers; what is gone after loading is left out."""
    sorter = TopologicalSorter({place: node.reads for place, node in enumerate(nodes)})
    return [place for place in sorter.static_order() if nodes[place].op_type != "Constant"]


def _groups(nodes: Sequence[PlacedNode], order: Sequence[int], key: _Key) -> list[tuple[int, ...]]:
    keys = {place: (nodes[place].ep, key(place)) for place in order}
    level: dict[int, int] = {}
    root = {place: place for place in order}

    def find(place: int) -> int:
        while root[place] != place:
            root[place] = place = root[root[place]]
        return place

    for place in order:
        reads = [read for read in nodes[place].reads if read in keys]
        level[place] = max((level[read] + (keys[read] != keys[place]) for read in reads), default=0)
        for read in reads:
            if level[read] == level[place]:
                root[find(read)] = find(place)
    groups: dict[int, list[int]] = defaultdict(list)
    for place in order:
        groups[find(place)].append(place)
    return [tuple(group) for group in groups.values()]


def _scopes(nodes: Sequence[PlacedNode], order: Sequence[int]) -> list[list[str]]:
    """The parts of names before the last; a node without goes with what it reads, else with what reads it."""
    scopes = [node.name.strip("/").split("/")[:-1] for node in nodes]
    for place in order:
        scopes[place] = scopes[place] or next((scopes[read] for read in nodes[place].reads if scopes[read]), [])
    for place in reversed(order):
        for read in nodes[place].reads:
            scopes[read] = scopes[read] or scopes[place]
    return scopes


def _view(nodes: Sequence[PlacedNode], groups: Sequence[tuple[int, ...]]) -> Blocks:
    block_of = {place: number for number, group in enumerate(groups) for place in group}
    arrows = {
        (block_of[read], block_of[place]): None
        for place in block_of
        for read in nodes[place].reads
        if read in block_of and block_of[read] != block_of[place]
    }
    return Blocks(
        tuple(Block(group, _shared([nodes[place].name for place in group])) for group in groups), tuple(arrows)
    )


def _shared(names: Sequence[str]) -> str:
    """What more than half of the names begin with, part by part."""
    parts = [name.strip("/").split("/")[:-1] for name in names]
    found: list[str] = []
    for depth in range(_DEEPEST):
        here = [scope[depth] for scope in parts if len(scope) > depth and scope[:depth] == found]
        best = max(set(here), key=here.count, default=None)
        if best is None or 2 * here.count(best) <= len(names):
            break
        found.append(best)
    return "/".join(found)
