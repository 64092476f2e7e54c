"""Which combinations of what won alone are tried: all of them where they are few. Else all changes together and that
without each one, and then what somebody proposes who has seen how the others did."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from modelwright.search._variant import AxisChange, Variant

# By slot, which takes one of these changes or none.
Space = Mapping[str, tuple[AxisChange, ...]]
# What each variant gained so far, as a part; None is one that does not work.
Seen = Sequence[tuple[Variant, float | None]]
# At most so many of the space that are not seen yet; the same for the same seed and the same past.
Proposer = Callable[[Space, Seen, int, int], Sequence[Variant]]

MOST_COMBINATIONS = 8
"""So many are tried whatever they are; of a larger space the rest is proposed."""
ROUND, MOST_PROPOSED = 4, 48
# So many rounds in a row may bring nothing better.
PATIENCE = 4
MISSING = "optuna, which would propose others, is not installed (pip install 'modelwright[tune]')"


class Combining:
    """What to try next, and how it went. The same past gives the same next, always."""

    def __init__(self, proposer: Proposer | None, seed: int) -> None:
        self._proposer, self._seed = proposer, seed
        self._space: Space = {}
        self._best, self._in_vain, self._left = -math.inf, 0, MOST_PROPOSED
        self.begun, self.proposed = False, 0

    def begin(self, winners: Sequence[Variant]) -> list[Variant]:
        """`winners` come best first."""
        self.begun, self._space = True, space_of(winners)
        every = len(self) <= MOST_COMBINATIONS
        return all_of(self._space) if every else together(winners, MOST_COMBINATIONS)

    def more(self, seen: Seen) -> list[Variant]:
        """Nothing where the space is small, nobody proposes, or what was proposed got no better for a while; once
        there is nothing, it stays so."""
        inside = [(variant, gain) for variant, gain in seen if self._holds(variant)]
        self._look(max((gain for _, gain in inside if gain is not None), default=0.0))
        if self._proposer is None or not self._left:
            return []
        found = list(self._proposer(self._space, inside, self._seed + self.proposed, min(ROUND, self._left)))
        self.proposed += len(found)
        self._left = self._left - len(found) if found else 0
        return found

    def _look(self, best: float) -> None:
        self._in_vain = 0 if best > self._best else self._in_vain + 1
        self._best = max(best, self._best)
        if self._in_vain >= PATIENCE or len(self) <= MOST_COMBINATIONS:
            self._left = 0

    def _holds(self, variant: Variant) -> bool:
        return all(change in self._space.get(change.slot, ()) for change in variant.changes)

    def __len__(self) -> int:
        """Combinations there are, of two changes or more."""
        values = [len(changes) for changes in self._space.values()]
        return math.prod(1 + count for count in values) - 1 - sum(values)

    @property
    def said(self) -> str | None:
        """What was looked at of a space that was too large to try everything."""
        if len(self) <= MOST_COMBINATIONS:
            return None
        tried = f"{len(self)} combinations of what won are possible: all changes together and that without each one"
        if self._proposer is None:
            return f"{tried} were tried; {MISSING}"
        return f"{tried} were tried, and {self.proposed} that optuna proposed"


def space_of(winners: Sequence[Variant]) -> Space:
    """Two changes of one slot exclude each other."""
    found: dict[str, tuple[AxisChange, ...]] = {}
    for change in sorted({change for winner in winners for change in winner.changes}):
        found[change.slot] = (*found.get(change.slot, ()), change)
    return found


def all_of(space: Space) -> list[Variant]:
    """Every combination of two changes or more, the largest first."""
    choices = itertools.product(*((None, *changes) for changes in space.values()))
    found = [Variant(tuple(sorted(one for one in chosen if one is not None))) for chosen in choices]
    return sorted((one for one in found if len(one.changes) > 1), key=lambda one: -len(one.changes))


def together(winners: Sequence[Variant], most: int) -> list[Variant]:
    """All changes that won together, the best of each slot; and that without each one of them, to see who is needed.

    `winners` come best first. Where leaving one out is what a winner is already, nothing is proposed twice.
    """
    chosen: dict[str, AxisChange] = {}
    for change in (change for winner in winners for change in winner.changes):
        chosen.setdefault(change.slot, change)
    every = sorted(chosen.values())
    if len(every) < 2:
        return []
    without = [Variant(tuple(one for one in every if one is not left)) for left in every]
    found = dict.fromkeys([Variant(tuple(every)), *without])
    return [variant for variant in found if len(variant.changes) > 1][:most]
