"""The product's only verdict words, and the frozen result that carries one."""

from __future__ import annotations

import enum
from dataclasses import dataclass

JUDGE_VERSION = 1
"""Goes up when the same units could get another verdict."""


class VerdictKind(enum.StrEnum):
    """What a comparison may say. `noop` and `duplicate` are found by comparing graphs, not by timing."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    NOOP = "noop"
    DUPLICATE = "duplicate"


@dataclass(frozen=True)
class Verdict:
    """A verdict with its evidence in short.

    `effect`, `low` and `high` are ratios of times base / arm minus 1: positive means the arm is faster.
    `low` and `high` are None when no interval is claimed; `reason` says why.
    """

    kind: VerdictKind
    effect: float | None
    low: float | None
    high: float | None
    units: int
    reason: str
    noise: float | None
    set_aside: int
    sentinel_units: int
    min_effect: float
    alpha: float
    judge_version: int = JUDGE_VERSION

    @property
    def decided(self) -> bool:
        """More units cannot be needed: something has been proven."""
        return self.kind in (VerdictKind.IMPROVED, VerdictKind.REGRESSED, VerdictKind.EQUIVALENT)
