"""Who is measured when. Plain data in, plain data out; every choice comes from one seeded coin."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

from modelwright._dataclass import dataclass

SENTINEL = None
_SENTINEL_EVERY = 4
_MOST_BLOCKS = 8


@dataclass(frozen=True)
class Turn:
    """One unit to measure: this arm (None: the base against itself), and whether the base has the first slot."""

    arm: str | None
    base_first: bool


class Schedule:
    """Rounds of all alive arms in random order; one unit of so many is a sentinel."""

    def __init__(self, seed: int, sentinel_every: int = _SENTINEL_EVERY) -> None:
        self._random = random.Random(seed)
        self._waiting: list[str] = []
        self._count, self._sentinel_every = 0, sentinel_every

    def next(self, alive: Sequence[str]) -> Turn:
        """The next unit, given who still needs units."""
        self._count += 1
        if self._count % self._sentinel_every == 0:
            return Turn(SENTINEL, self._coin())
        self._waiting = [name for name in self._waiting if name in alive]
        if not self._waiting:
            self._waiting = self._random.sample(list(alive), len(alive))
        return Turn(self._waiting.pop(), self._coin())

    def _coin(self) -> bool:
        return self._random.random() < 0.5


def segments(blocks: int) -> Iterator[tuple[int, int]]:
    """Mirrored bursts X Y Y X, so often: (slot, bursts), with neighbours of one slot joined.

    A linear drift cancels, because both slots have the same mean position in time.
    """
    yield 0, 1
    for block in range(blocks):
        yield 1, 2
        yield 0, 1 if block == blocks - 1 else 2


def blocks_per_unit(open_s: float, block_s: float, least_s: float) -> int:
    """So many as fit into `least_s`, because what a unit says is the median over pairs of bursts. More where opening
    sessions is what costs (Kalibera and Jones, with equal noise at both levels)."""
    wanted = max(math.ceil(math.sqrt(open_s / block_s)), int(least_s / block_s))
    return max(1, min(_MOST_BLOCKS, wanted))
