"""Many arms against one baseline, with one error level for the whole family."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from modelwright.errors import UsageError
from modelwright.judge._judge import Judge
from modelwright.judge._sentinel import Sentinel
from modelwright.judge._verdict import Finding, finding
from modelwright.judge._words import VerdictKind

if TYPE_CHECKING:
    from modelwright.judge._legs import Samples

WORK, TYPICAL = 0.1, 0.5
"""A tenth of the runs is faster than p10: what the work takes when nothing disturbs it. p50 is the typical run."""


class Race:
    """A judge per arm and quantile at alpha / (arms x quantiles): all claims about all arms hold together with
    probability 1 - alpha. That bound holds under any dependence, so all may share the baseline's samples.

    An arm needs no more units when all its questions are decided, or when one was and as many units again did not
    decide the others. With `max_slowdown` it needs units until it is known whether it keeps that margin, and no more.
    """

    def __init__(
        self,
        arms: Iterable[str],
        alpha: float = 0.05,
        *,
        min_effect: float = 0.02,
        quantiles: tuple[float, ...] = (WORK, TYPICAL),
        max_slowdown: float | None = None,
    ) -> None:
        names = tuple(arms)
        if not names or len(set(names)) != len(names):
            raise UsageError(
                "a race cannot start",
                cause="it needs one or more arms with different names",
                fix="name every arm once",
            )
        self.alpha = alpha
        self.max_slowdown = max_slowdown
        level = alpha / (len(names) * len(quantiles))
        self._sentinels = {quantile: Sentinel(min_effect, quantile) for quantile in quantiles}
        self._judges = {
            name: tuple(
                Judge(min_effect, level, quantile=quantile, sentinel=sentinel)
                for quantile, sentinel in self._sentinels.items()
            )
            for name in names
        }
        self._first_proof: dict[str, int] = {}
        self._settled: set[str] = set()

    @property
    def arms(self) -> tuple[str, ...]:
        """All arms, in the order given."""
        return tuple(self._judges)

    @property
    def alive(self) -> tuple[str, ...]:
        """The arms that still need units."""
        return tuple(name for name in self._judges if name not in self._settled)

    @property
    def min_units(self) -> int:
        """Units per arm before which no verdict is possible."""
        return next(iter(self._judges.values()))[0].min_units

    def add(self, name: str, *, base: Samples, arm: Samples) -> Finding:
        """One unit of one arm, and what is proven about it now."""
        if name not in self._judges:
            raise UsageError(
                f"arm {name!r} takes no units",
                cause="it is not in this race",
                fix=f"measure one of: {', '.join(self._judges)}",
            )
        for judge in self._judges[name]:
            judge.add(base, arm)
        found = self._finding(name)
        self._settle(name, found)
        return found

    def add_sentinel(self, first: Samples, second: Samples) -> None:
        """One A/A unit of the shared baseline, by slot; when it fails, no arm has a valid verdict."""
        for sentinel in self._sentinels.values():
            sentinel.add(first, second)

    def findings(self) -> dict[str, Finding]:
        """What is proven about every arm; one that is settled keeps it, unless the sentinel failed since."""
        return {name: self._finding(name) for name in self._judges}

    def within(self, name: str) -> bool | None:
        """Whether the arm keeps `max_slowdown`: False once any quantile is proven slower than that, True once the
        first is proven not to be; None is cannot tell."""
        assert self.max_slowdown is not None
        answers = [judge.within(self.max_slowdown) for judge in self._judges[name]]
        return False if False in answers else answers[0]

    def best(self) -> str | None:
        """The improved arm with the highest proven gain; None means the baseline stays."""
        gains = {
            name: max(verdict.low for verdict in found.by if verdict.low is not None)
            for name, found in self.findings().items()
            if found.kind is VerdictKind.IMPROVED
        }
        return max(gains, key=lambda name: gains[name]) if gains else None

    def _finding(self, name: str) -> Finding:
        return finding(tuple(judge.verdict() for judge in self._judges[name]))

    def _settle(self, name: str, found: Finding) -> None:
        units = found.by[0].units
        if found.proven:
            self._first_proof.setdefault(name, units)
        if self.max_slowdown is not None:
            settled = self.within(name) is not None
        else:
            waited = units >= 2 * self._first_proof.get(name, units)
            settled = waited or len(found.proven) == len(found.by)
        if settled:
            self._settled.add(name)
