"""Many arms against one baseline, with one error level for the whole family."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from modelwright.errors import UsageError
from modelwright.judge._judge import Judge
from modelwright.judge._verdict import Verdict, VerdictKind

if TYPE_CHECKING:
    from modelwright.judge._legs import Samples


class Race:
    """A judge per arm at alpha / k: all claims about all arms hold together with probability 1 - alpha.

    That bound holds under any dependence between the arms, so all may share the baseline's samples.
    An arm that is decided is dropped and takes no more units; the others go on.
    """

    def __init__(
        self, arms: Iterable[str], alpha: float = 0.05, *, min_effect: float = 0.02, quantile: float = 0.5
    ) -> None:
        names = tuple(arms)
        if not names or len(set(names)) != len(names):
            raise UsageError(
                "a race cannot start",
                cause="it needs one or more arms with different names",
                fix="name every arm once",
            )
        self.alpha = alpha
        self._judges = {name: Judge(min_effect, alpha / len(names), quantile=quantile) for name in names}
        self._decided: set[str] = set()

    @property
    def arms(self) -> tuple[str, ...]:
        """All arms, in the order given."""
        return tuple(self._judges)

    @property
    def alive(self) -> tuple[str, ...]:
        """The arms that still need units."""
        return tuple(name for name in self._judges if name not in self._decided)

    @property
    def min_units(self) -> int:
        """Units per arm before which no verdict is possible."""
        return next(iter(self._judges.values())).min_units

    def add(self, name: str, *, base: Samples, arm: Samples) -> Verdict:
        """One unit of one arm that is still alive, and its verdict now."""
        if name not in self.alive:
            raise UsageError(
                f"arm {name!r} takes no units",
                cause="it is decided" if name in self._judges else "it is not in this race",
                fix=f"measure one of: {', '.join(self.alive) or 'none, the race is over'}",
            )
        self._judges[name].add(base, arm)
        verdict = self._judges[name].verdict()
        if verdict.decided:
            self._decided.add(name)
        return verdict

    def add_sentinel(self, first: Samples, second: Samples) -> None:
        """One A/A unit of the shared baseline; when it fails, no arm has a valid verdict."""
        for judge in self._judges.values():
            judge.add_sentinel(first, second)

    def verdicts(self) -> dict[str, Verdict]:
        """The verdict of every arm; a dropped one keeps its own, unless the sentinel failed since."""
        return {name: judge.verdict() for name, judge in self._judges.items()}

    def best(self) -> str | None:
        """The improved arm with the highest proven gain; None means the baseline stays."""
        gains = {
            name: verdict.low
            for name, verdict in self.verdicts().items()
            if verdict.kind is VerdictKind.IMPROVED and verdict.low is not None
        }
        return max(gains, key=lambda name: gains[name]) if gains else None
