"""The cheapest way to part a graph in two: a minimum cut, by augmenting paths over levels (Dinic)."""

from __future__ import annotations

from collections import deque

_TINY = 1e-9


class Cut:
    """Nodes are any names; `SOURCE` stays on one side and `SINK` on the other."""

    SOURCE, SINK = "::source", "::sink"

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._edges: list[list[int]] = []
        self._ends: list[int] = []
        self._room: list[float] = []
        self.cost = 0.0

    def add(self, tail: str, head: str, cost: float) -> None:
        """What it costs when `tail` is on the side of the source and `head` is not."""
        if cost <= 0:
            return
        for begin, end, room in ((tail, head, cost), (head, tail, 0.0)):
            self._edges[self._number(begin)].append(len(self._ends))
            self._ends.append(self._number(end))
            self._room.append(room)

    def source_side(self) -> set[str]:
        """The nodes on the side of the source where the cost of the cut is least; `cost` is that, then."""
        begin, end = self._number(self.SOURCE), self._number(self.SINK)
        levels = self._levels(begin)
        while levels[end] >= 0:
            places = [0] * len(self._edges)
            while self._push(begin, end, levels, places):
                pass
            levels = self._levels(begin)
        return {name for name, number in self._numbers.items() if levels[number] >= 0}

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self._edges)
            self._edges.append([])
        return self._numbers[name]

    def _levels(self, begin: int) -> list[int]:
        levels = [-1] * len(self._edges)
        levels[begin] = 0
        waiting = deque([begin])
        while waiting:
            node = waiting.popleft()
            for edge in self._edges[node]:
                if self._room[edge] > _TINY and levels[self._ends[edge]] < 0:
                    levels[self._ends[edge]] = levels[node] + 1
                    waiting.append(self._ends[edge])
        return levels

    def _push(self, begin: int, end: int, levels: list[int], places: list[int]) -> bool:
        """One more path, without recursion: graphs are deeper than Python's stack."""
        path: list[int] = []
        node = begin
        while node != end:
            edge = self._onward(node, levels, places)
            if edge is None:
                if not path:
                    return False
                node = self._ends[path.pop() ^ 1]
                places[node] += 1
                continue
            path.append(edge)
            node = self._ends[edge]
        least = min(self._room[edge] for edge in path)
        self.cost += least
        for edge in path:
            self._room[edge] -= least
            self._room[edge ^ 1] += least
        return True

    def _onward(self, node: int, levels: list[int], places: list[int]) -> int | None:
        edges = self._edges[node]
        while places[node] < len(edges):
            edge = edges[places[node]]
            if self._room[edge] > _TINY and levels[self._ends[edge]] == levels[node] + 1:
                return edge
            places[node] += 1
        return None
