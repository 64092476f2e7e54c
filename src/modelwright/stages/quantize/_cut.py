"""The cheapest way to part a graph in two: a minimum cut, by augmenting paths over levels (Dinic)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from types import MappingProxyType

_TINY = 1e-9
_NOTHING: Mapping[str, float] = MappingProxyType({})


class Cut:
    """Nodes are any names; `SOURCE` stays on one side and `SINK` on the other."""

    SOURCE, SINK = "::source", "::sink"

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._edges: list[list[int]] = []
        self._ends: list[int] = []
        self._costs: list[float] = []

    def add(self, tail: str, head: str, cost: float) -> None:
        """What it costs when `tail` is on the side of the source and `head` is not."""
        if cost <= 0:
            return
        for begin, end, room in ((tail, head, cost), (head, tail, 0.0)):
            self._edges[self._number(begin)].append(len(self._ends))
            self._ends.append(self._number(end))
            self._costs.append(room)

    def cheapest(self, more: Mapping[str, float] = _NOTHING) -> tuple[set[str], float]:
        """The nodes on the side of the source where the cost of the cut is least, and that cost. `more` is what it
        costs in addition to have a node that hangs on the source on the other side."""
        begin, end = self._number(self.SOURCE), self._number(self.SINK)
        room, names = self._costs.copy(), list(self._numbers)
        for edge in self._edges[begin]:
            if self._costs[edge] > 0:
                room[edge] += more.get(names[self._ends[edge]], 0.0)
        cost, levels = 0.0, self._levels(begin, room)
        while levels[end] >= 0:
            places = [0] * len(self._edges)
            while least := self._push((begin, end), room, levels, places):
                cost += least
            levels = self._levels(begin, room)
        return {name for name, number in self._numbers.items() if levels[number] >= 0}, cost

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self._edges)
            self._edges.append([])
        return self._numbers[name]

    def _levels(self, begin: int, room: list[float]) -> list[int]:
        levels = [-1] * len(self._edges)
        levels[begin] = 0
        waiting = deque([begin])
        while waiting:
            node = waiting.popleft()
            for edge in self._edges[node]:
                if room[edge] > _TINY and levels[self._ends[edge]] < 0:
                    levels[self._ends[edge]] = levels[node] + 1
                    waiting.append(self._ends[edge])
        return levels

    def _push(self, ends: tuple[int, int], room: list[float], levels: list[int], places: list[int]) -> float:
        """What one more path takes, 0 where there is none. Without recursion: graphs are deeper than Python's stack."""
        path: list[int] = []
        node, end = ends
        while node != end:
            edge = self._onward(node, room, levels, places)
            if edge is None:
                if not path:
                    return 0.0
                node = self._ends[path.pop() ^ 1]
                places[node] += 1
                continue
            path.append(edge)
            node = self._ends[edge]
        least = min(room[edge] for edge in path)
        for edge in path:
            room[edge] -= least
            room[edge ^ 1] += least
        return least

    def _onward(self, node: int, room: list[float], levels: list[int], places: list[int]) -> int | None:
        edges = self._edges[node]
        while places[node] < len(edges):
            edge = edges[places[node]]
            if room[edge] > _TINY and levels[self._ends[edge]] == levels[node] + 1:
                return edge
            places[node] += 1
        return None
