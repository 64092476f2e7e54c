"""Whether runs take no longer than they may, told by units of fresh sessions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from modelwright._dataclass import dataclass
from modelwright.search._events import Samples


@dataclass(frozen=True)
class LatencyCheck:
    """`ms` is the middle of so many units, each by this quantile of its runs; `kept` is None where they do not tell."""

    limit_ms: float
    quantile: float
    ms: float | None
    units: int
    kept: bool | None
    reason: str


def unit_quantile(samples: Samples, quantile: float) -> float:
    """Of all runs of a leg, in ms."""
    runs = sorted(run for burst in samples for run in burst)
    return runs[max(0, math.ceil(quantile * len(runs)) - 1)]


def within(units_ms: Sequence[float], limit_ms: float, alpha: float) -> bool | None:
    """Whether the middle of all units there could be is within the limit. One may look after every unit: a bet against
    a fair coin, over all its biases, wins 1/alpha so often at most (Ville)."""
    under = sum(unit <= limit_ms for unit in units_ms)
    over = len(units_ms) - under
    won = len(units_ms) * math.log(2) + math.lgamma(under + 1) + math.lgamma(over + 1) - math.lgamma(under + over + 2)
    return under > over if won >= math.log(1 / alpha) else None


def check(units_ms: Sequence[float], limit_ms: float, quantile: float, alpha: float) -> LatencyCheck:
    kept, word = within(units_ms, limit_ms, alpha), f"p{100 * quantile:g}"
    if not units_ms:
        return LatencyCheck(limit_ms, quantile, None, 0, None, "nothing was timed")
    said = f"{word} of a run is {median(units_ms):.3g} ms in the middle of {len(units_ms)} units"
    why = {True: "within", False: "more than", None: "which is too few to tell about"}[kept]
    return LatencyCheck(limit_ms, quantile, median(units_ms), len(units_ms), kept, f"{said}, {why} {limit_ms:g} ms")
