"""The frozen results that carry a verdict about speed."""

from __future__ import annotations

from modelwright._dataclass import dataclass
from modelwright.judge._words import VerdictKind

JUDGE_VERSION = 3
"""Goes up when the same units could get another verdict."""


_PROVEN = (VerdictKind.IMPROVED, VerdictKind.REGRESSED, VerdictKind.EQUIVALENT)


@dataclass(frozen=True)
class Verdict:
    """A verdict about one quantile of the run time, with its evidence in short.

    `effect`, `low` and `high` are ratios of times base / arm minus 1: positive means the arm is faster.
    `low` and `high` are None when no interval is claimed; `reason` says why. `average` is the mean effect over all
    units, which a minority of odd sessions moves and the effect does not; `bimodal` counts units with such a leg.
    """

    kind: VerdictKind
    quantile: float
    effect: float | None
    low: float | None
    high: float | None
    units: int
    reason: str
    noise: float | None
    average: float | None
    bimodal: int
    sentinel_units: int
    min_effect: float
    alpha: float
    judge_version: int = JUDGE_VERSION

    @property
    def decided(self) -> bool:
        """More units cannot be needed: something has been proven."""
        return self.kind in _PROVEN


@dataclass(frozen=True)
class Finding:
    """What is proven about one arm: a verdict for each quantile asked for, and the word that covers them.

    `improved` and `regressed` need one proof and none of the opposite; `equivalent` needs all of them.
    """

    kind: VerdictKind
    by: tuple[Verdict, ...]

    @property
    def proven(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.by if verdict.decided)


def finding(verdicts: tuple[Verdict, ...]) -> Finding:
    """The word for all verdicts about one arm."""
    kinds = {verdict.kind for verdict in verdicts}
    if {VerdictKind.IMPROVED, VerdictKind.REGRESSED} <= kinds:
        return Finding(VerdictKind.MIXED, verdicts)
    for one in (VerdictKind.IMPROVED, VerdictKind.REGRESSED):
        if one in kinds:
            return Finding(one, verdicts)
    return Finding(kinds.pop() if len(kinds) == 1 else VerdictKind.INCONCLUSIVE, verdicts)
