"""The cheapest set of changes that is good enough, found with few trials. Pure: who asks tries them.

Things are known by their place in the order in which they are likeliest to help. More is usually better, but not
always: a range that was too narrow for what is let through now makes things worse. So what is returned was tried.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

Chosen = frozenset[int]
NOTHING: Chosen = frozenset()
# Of so few things every set is thought of; of more, those that differ from the best one in a few.
_ALL_SETS = 12
# What a set must save to be worth a trial.
_SAVING = 0.01
# How far off the expected noise of an untried set may be: half, or twice as much.
_DOUBT = 2.0
# How much the order that was given counts beside what was seen.
_PRIOR = 0.05
# Trials for each thing without getting any quieter, where none of the usual sets is good.
_PATIENCE = 2
# Cheaper sets that may be tried in vain, one after the other.
_ATTEMPTS = 12


@dataclass(frozen=True)
class Trial:
    """`noise` is null where the set could not be built or run. `cost` is what good sets are chosen by."""

    good: bool
    noise: float | None
    cost: float


@dataclass(frozen=True)
class Things:
    """What can be changed: how many, what a set of them is expected to cost, and the noise each is expected to take."""

    gains: tuple[float, ...]
    price: Callable[[Chosen], float]

    @property
    def count(self) -> int:
        return len(self.gains)


class Spent(Exception):
    """Nothing more may be tried."""


class SubsetSearch:
    """`ask` tries a set, and raises Spent when nothing more may be tried. `best` is the cheapest good one so far;
    `minimal` says that it was tried without each of its members, in vain."""

    def __init__(self, things: Things, ask: Callable[[Chosen], Trial]) -> None:
        self._things, self._ask = things, ask
        self._seen: dict[Chosen, Trial] = {}
        self.best: Chosen | None = None

    @property
    def minimal(self) -> bool:
        if self.best is None:
            return False
        less = [self.best - {thing} for thing in self.best]
        return all(rest in self._seen and not self._seen[rest].good for rest in less)

    @property
    def whole(self) -> bool:
        """Was everything taken together, and could that be built?"""
        found = self._seen.get(_first(self._things.count))
        return found is not None and found.noise is not None

    def run(self) -> None:
        """Until nothing promises to be better, or everything is spent."""
        try:
            if self._good(NOTHING) or not (self._reach() or self._climb()):
                return
            self._drop()
            while self._improve():
                self._drop()
        except Spent:
            return

    def _good(self, chosen: Chosen) -> bool:
        """Tried once. The best one is remembered at once, because the next trial may be the last."""
        if chosen not in self._seen:
            found = self._seen[chosen] = self._ask(chosen)
            if found.good and (self.best is None or self._cost(chosen) < self._cost(self.best)):
                self.best = chosen
        return self._seen[chosen].good

    def _cost(self, chosen: Chosen) -> tuple[float, int]:
        return self._seen[chosen].cost, len(chosen)

    def _reach(self) -> bool:
        """The first ones, twice as many each time; when not even all are good, the sizes between, widest gap first.
        Then the shortest good start of the order."""
        tried = [0]
        for size in _sizes(self._things.count):
            if self._hopeless(_first(size)):
                continue
            if self._good(_first(size)):
                self._shrink(max(one for one in tried if one < size), size)
                return True
            tried.append(size)
        return False

    def _shrink(self, low: int, high: int) -> None:
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._good(_first(middle)) else (middle, high)

    def _climb(self) -> bool:
        """No start of the order is good: what is expected to be the quietest, until that helps no more."""
        patience = left = _PATIENCE * self._things.count
        while left > 0 and (here := self._quietest()) is not None:
            expected = self._expected()
            untried = [one for one in self._near(here) if one not in self._seen and not self._hopeless(one)]
            if not untried:
                return False
            chosen = min(untried, key=lambda one: (expected(one), sorted(one)))
            if self._good(chosen):
                return True
            if self._quietest() != here:
                left = patience
            elif self._seen[chosen].noise is not None:
                left -= 1
        return False

    def _hopeless(self, chosen: Chosen) -> bool:
        """Does it hold one that could not be built? With more raised still less is left to quantize."""
        return any(trial.noise is None and seen <= chosen for seen, trial in self._seen.items())

    def _quietest(self) -> Chosen | None:
        known = [
            (trial.noise, sorted(chosen), chosen) for chosen, trial in self._seen.items() if trial.noise is not None
        ]
        return min(known)[2] if known else None

    def _drop(self) -> None:
        """Leave out what is not needed, the dearest first, until nothing can go."""
        again = True
        while again:
            assert self.best is not None
            kept, again = self.best, False
            for thing in sorted(kept, key=lambda one: (-self._things.price(frozenset({one})), -one)):
                if self._good(kept - {thing}):
                    kept, again = kept - {thing}, True
            if again:
                self.best = kept

    def _improve(self) -> bool:
        """Try sets that would be cheaper, as long as one promises to be good enough; was one?"""
        for _ in range(_ATTEMPTS):
            chosen = self._promising()
            if chosen is None:
                return False
            if self._good(chosen) and self.best == chosen:
                return True
        return False

    def _promising(self) -> Chosen | None:
        """The likeliest to pay: what it would save, times how sure it is to be good."""
        assert self.best is not None
        limit, top = self._limit(), self._seen[self.best].cost
        noise, price = self._expected(), self._price()
        found = []
        for chosen in self._near(self.best):
            saved = top - price(chosen)
            hope = math.log(limit / max(noise(chosen), limit * 1e-6)) / math.log(_DOUBT)
            if saved > _SAVING * top and hope > -1.0 and chosen not in self._seen and not self._hopeless(chosen):
                found.append((saved * min(1.0, (hope + 1.0) / 2), sorted(chosen), chosen))
        return max(found)[2] if found else None

    def _near(self, here: Chosen) -> Iterator[Chosen]:
        """Every set of a few things; of many, those that differ from this one by an exchange."""
        everything = range(self._things.count)
        if self._things.count <= _ALL_SETS:
            for size in everything:
                yield from map(frozenset, itertools.combinations(everything, size))
            return
        outside = [thing for thing in everything if thing not in here][:_ALL_SETS]
        fewer = [here, *_less(here, 1), *_less(here, 2)]
        yield from fewer
        yield from (less | {thing} for less in fewer for thing in outside)

    def _limit(self) -> float:
        """The noise between good and not, as far as it was seen."""
        known = [trial for trial in self._seen.values() if trial.noise]
        good = [trial.noise for trial in known if trial.good and trial.noise]
        bad = [trial.noise for trial in known if not trial.good and trial.noise]
        if not (good and bad):
            # Below all that was seen, so that the order still counts.
            return 0.1 * min([*good, *bad], default=1.0)
        return math.sqrt(max(good) * min((noise for noise in bad if noise > max(good)), default=max(good)))

    def _expected(self) -> Callable[[Chosen], float]:
        """The noise of a set. What each thing takes away adds up: from what was seen, and from the order where nothing
        was."""
        known = {chosen: trial.noise for chosen, trial in self._seen.items() if trial.noise is not None}
        gains, limit = np.array(self._things.gains, float), self._limit()
        start = known.get(NOTHING, max(known.values(), default=1.0))
        found = _added_up(known, start, -start * gains / (gains.sum() or 1.0), limit)
        return lambda chosen: start + float(found[[*chosen]].sum())

    def _price(self) -> Callable[[Chosen], float]:
        """What a set costs: as was said, but for what is wrong with that by what was seen."""
        said = self._things.price
        known = {chosen: trial.cost - said(chosen) for chosen, trial in self._seen.items() if trial.noise is not None}
        start = known.get(NOTHING, 0.0)
        found = _added_up(known, start, np.zeros(self._things.count), max(1.0, said(NOTHING)))
        return lambda chosen: said(chosen) + start + float(found[[*chosen]].sum())


def _added_up(known: Mapping[Chosen, float], start: float, prior: NDArray[Any], scale: float) -> NDArray[Any]:
    """What each thing adds to `start`, by least squares; errors count in proportion to the values, for `scale` half."""
    weights = np.array([1.0 / (abs(value) + scale) for value in known.values()])
    rows = np.array([[thing in chosen for thing in range(len(prior))] for chosen in known], float)
    left = np.vstack([rows * weights[:, None], _PRIOR / scale * np.eye(len(prior))])
    right = np.concatenate([(np.array([*known.values()]) - start) * weights, _PRIOR / scale * prior])
    return np.asarray(np.linalg.lstsq(left, right, rcond=None)[0])


def _first(size: int) -> Chosen:
    return frozenset(range(size))


def _less(chosen: Chosen, count: int) -> Iterator[Chosen]:
    return (chosen - {*gone} for gone in itertools.combinations(sorted(chosen), count))


def _sizes(count: int) -> Iterator[int]:
    """1, 2, 4 … all; then the middle of the widest gap that is left, the larger one of equals."""
    tried = sorted({0, *(min(2**power, count) for power in range(count.bit_length() + 1)), count})
    yield from (size for size in tried if size)
    while gaps := [(high - low, high, low) for low, high in itertools.pairwise(tried) if high - low > 1]:
        _, high, low = max(gaps)
        middle = (low + high + 1) // 2
        tried = sorted([*tried, middle])
        yield middle
