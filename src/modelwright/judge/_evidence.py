"""The decision engine: a signed-rank betting process and the confidence sequence it gives.

docs/judge.md states the assumption and the proof. In short: if the units are symmetric around
their centre, the sign of each deviation is a fair coin even when all sizes are known. Wealth won
by betting on a fair coin reaches 1/alpha with probability at most alpha, however often one looks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
else:
    np = lazy("numpy")

# The first two bets grow with the rank of a deviation: they find small effects in noise.
# The last two ignore size: they decide fast when all units agree and shrug off outliers.
SCORE_BETS = (0.5, 2.0)
SIGN_BETS = (0.7, 0.995)
_BETS = len(SCORE_BETS) + len(SIGN_BETS)


@dataclass(frozen=True)
class Bounds:
    """Where the centre may lie; None on a side that nothing excludes yet."""

    low: float | None
    high: float | None


def min_units(alpha: float) -> int:
    """Units below which no data at all could exclude anything at this level."""
    units = 1
    while sum((1 + bet) ** units for bet in SIGN_BETS) / _BETS < 2 / alpha:
        units += 1
    return units


def log_evidence(units: Floats, centre: float) -> tuple[Floats, Floats]:
    """Log wealth after each unit, betting that the true centre is above, and below, `centre`.

    Works along the last axis, so many comparisons can be played at once.
    """
    deviation = units - centre
    sign = np.sign(deviation)
    bets = _bets(np.abs(deviation)) * sign
    return _mixed(np.log1p(bets)), _mixed(np.log1p(-bets))


def confidence_bounds(units: Floats, alpha: float) -> Bounds:
    """Everything no look so far has excluded; covers the centre at all times with probability 1 - alpha.

    The wealth is monotone in the centre and changes only at averages of two units, so bisection is exact.
    """
    if len(units) == 0:
        return Bounds(None, None)
    points = walsh_averages(units)
    # Between two points the evidence is constant: gap k lies just below point k.
    gaps = np.concatenate(([points[0] - 1], (points[:-1] + points[1:]) / 2, [points[-1] + 1]))
    first, last = _gaps_left(units, gaps, math.log(2 / alpha))
    return Bounds(
        low=float(points[first - 1]) if first > 0 else None,
        high=float(points[last]) if last < len(points) else None,
    )


def excludes(units: Floats, centre: float, alpha: float) -> bool:
    """Whether some look so far has excluded this centre."""
    if len(units) == 0:
        return False
    above, below = log_evidence(units, centre)
    return bool(max(above.max(), below.max()) >= math.log(2 / alpha))


def walsh_averages(units: Floats) -> Floats:
    """The sorted averages of all pairs, each unit with itself included."""
    rows, columns = np.triu_indices(len(units))
    return np.unique((units[rows] + units[columns]) / 2)


def pseudo_median(units: Floats) -> float:
    """Hodges-Lehmann: nearly as sharp as the mean, hardly moved by outliers."""
    rows, columns = np.triu_indices(len(units))
    return float(np.median((units[rows] + units[columns]) / 2))


def _bets(size: Floats) -> Floats:
    """The share of the wealth put on each unit by each player: bigger deviation, bigger share."""
    count = size.shape[-1]
    earlier = np.tri(count, dtype=bool)
    rank = np.sum((size[..., None, :] <= size[..., :, None]) & earlier, axis=-1)
    score = np.arctanh((rank - 0.5) / np.arange(1, count + 1))
    by_rank = [np.tanh(bet * score) for bet in SCORE_BETS]
    by_sign = [np.full_like(score, bet) for bet in SIGN_BETS]
    return np.stack(by_rank + by_sign)


def _mixed(log_factors: Floats) -> Floats:
    """The log of the average wealth of the players, each starting with 1."""
    wealth = np.cumsum(log_factors, axis=-1)
    mixed: Floats = np.logaddexp.reduce(wealth, axis=0) - math.log(_BETS)
    return mixed


def _gaps_left(units: Floats, gaps: Floats, line: float) -> tuple[int, int]:
    """The first gap not excluded from below and the last not excluded from above, both by bisection."""
    first, first_end = 0, len(gaps) - 1
    last_end, last = 0, len(gaps) - 1
    while first < first_end or last_end < last:
        low, high = (first + first_end) // 2, (last_end + last + 1) // 2
        above, below = log_evidence(units - gaps[[low, high], None], 0.0)
        if first < first_end:
            first, first_end = (low + 1, first_end) if above[0].max() >= line else (first, low)
        if last_end < last:
            last_end, last = (last_end, high - 1) if below[1].max() >= line else (high, last)
    return first, last
