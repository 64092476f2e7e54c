"""Is the candidate worse than allowed? Paired non-inferiority on per-sample scores. Pure: numbers in, bounds out.

The evidence is a bet: money put on "the mean drop is below the margin" can be expected not to grow while that is
untrue, so it reaches 1/alpha with probability alpha at most, however often one looks and whenever one stops.
docs/eval.md has the proof, and bench/eval_power.py measures how often it errs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.judge._words import VerdictKind

if TYPE_CHECKING:
    import statistics

    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    statistics = lazy("statistics")

# 90 % is promised; the scatter it is computed from is itself an estimate, so a little more is aimed at.
POWER = 0.92
# A handful of samples is an anecdote, whatever it proves on paper.
MIN_SAMPLES = 30
# Players who each stake a fixed share of what they may lose on every sample. The bold decide fast when nothing is lost,
# the timid when much is lost and gained. Fixed stakes make the outcome the same in any order of the samples.
_STAKES = tuple(2.0**-power for power in range(11))
_PURSES = tuple(1 / (power + 1) for power in range(11))
_RUINED = -7.0
_MOST_SAMPLES = 10**9
_STEPS = 40


@dataclass(frozen=True)
class Paired:
    """Bounds of the drop (how much worse the candidate is) with what they were computed from.

    The drop is above `low`, and below `high`, each with probability 1 - alpha at all looks together; both are None
    where `reason` says why nothing bounds it. `span` is what one sample can lose or gain, `worst` the most one lost.
    `needed` samples decide about `margin` with 90 % power: that many pass a candidate that lost nothing; and
    `needed_at_drop` decide if the true drop is the one that was seen. `resolves` is the smallest margin that the
    samples at hand can decide about in the first sense.
    """

    method: str
    samples: int
    changed: int
    alpha: float
    span: float | None
    seen: float
    worst: float
    low: float | None
    high: float | None
    margin: float | None
    needed: int | None
    needed_at_drop: int | None
    resolves: float | None
    verdict: VerdictKind | None
    reason: str | None


def paired(
    reference: NDArray[Any],
    candidate: NDArray[Any],
    *,
    margin: float | None,
    span: float | None,
    relative: bool = False,
    alpha: float = 0.05,
) -> Paired:
    """Compare scores of the same samples, where more is better.

    With `relative` the margin is a share of the reference's mean. `span` is how far the two scores of one sample can
    lie apart: without it, what a sample that was not drawn may cost has no bound, and nothing is decided.
    """
    reference, candidate = np.asarray(reference, np.float64), np.asarray(candidate, np.float64)
    drops, mean = reference - candidate, float(reference.mean())
    allowed = None if margin is None else margin * abs(mean) if relative else margin
    share = margin if relative and margin is not None else 0.0
    reason = _why_not(drops, span)
    test = None if reason or span is None else _test(drops, reference, share, span)
    seen, enough = float(drops.mean()), len(drops) >= MIN_SAMPLES
    low, high = test.bounds(alpha) if test else (None, None)
    return Paired(
        method="betting",
        samples=len(drops),
        changed=int(np.count_nonzero(drops)),
        alpha=alpha,
        span=span,
        seen=seen,
        worst=float(drops.max()),
        low=low,
        high=high,
        margin=allowed,
        needed=test.needed(allowed, alpha) if test and allowed else None,
        needed_at_drop=test.needed(allowed, alpha, seen) if test and allowed else None,
        resolves=test.resolves(alpha) if test and enough else None,
        verdict=None if allowed is None else test.verdict(allowed, alpha) if test and enough else _UNDECIDED,
        reason=reason or (None if enough else f"below {MIN_SAMPLES} samples nothing is decided"),
    )


def _why_not(drops: NDArray[Any], span: float | None) -> str | None:
    if span is None:
        return "how much one sample can lose is not known, and without that no number of samples bounds the mean"
    furthest = float(np.abs(drops).max())
    if furthest > span * (1 + 1e-9):
        return f"one sample changed by {furthest:.4g}, more than the {span:.4g} that one can change by as was declared"
    return None


def _test(drops: NDArray[Any], reference: NDArray[Any], share: float, span: float) -> Drops:
    # A relative margin is itself measured: test drop - share x reference, then move back by what is allowed.
    mean = float(reference.mean())
    tested, counts = np.unique(drops - math.copysign(share, mean) * reference, return_counts=True)
    return Drops(tested, counts, span + share * float(np.abs(reference).max()), share * abs(mean))


_UNDECIDED = VerdictKind.INCONCLUSIVE


@dataclass(frozen=True, eq=False)
class Drops:
    """How often each drop was seen, and `most`, which none can exceed on either side.

    `moved` is the mean part of a relative margin, which the drops here lack.
    """

    drops: NDArray[Any]
    counts: NDArray[Any]
    most: float
    moved: float = 0.0

    def verdict(self, margin: float, alpha: float) -> VerdictKind:
        limit, line = margin - self.moved, -math.log(alpha)
        if limit >= self.most or log_wealth(self.drops, self.counts, limit, self.most) >= line:
            return VerdictKind.PASS
        failed = log_wealth(-self.drops, self.counts, -limit, self.most) >= line
        return VerdictKind.FAIL if failed else VerdictKind.INCONCLUSIVE

    def bounds(self, alpha: float) -> tuple[float, float]:
        high = _highest(self.drops, self.counts, self.most, alpha)
        low = -_highest(-self.drops, self.counts, self.most, alpha)
        return low + self.moved, high + self.moved

    def needed(self, margin: float, alpha: float, drop: float = 0.0) -> int | None:
        """Samples that place a true `drop` on its side of the margin; None where no number does."""
        if margin >= self.most:
            return MIN_SAMPLES
        growth = self._growth(margin, drop)
        return _smallest(lambda samples: _reached(growth, samples) >= -math.log(alpha))

    def resolves(self, alpha: float) -> float | None:
        count, line = int(self.counts.sum()), -math.log(alpha)
        return _edge(lambda margin: _reached(self._growth(margin, 0.0), count) >= line, 0.0, self.most)

    def _growth(self, margin: float, drop: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Of each player's log wealth at a true `drop`: mean and deviation per sample."""
        drops, weights = self._around(drop)
        side = 1.0 if drop < margin else -1.0
        # Who stakes all is ruined by one such sample, but not by the small chance of one.
        logs = np.maximum(_log_factors(side * drops, side * margin, self.most), _RUINED)
        mean = weights @ logs
        return mean, np.sqrt(weights @ (logs - mean) ** 2)

    def _around(self, mean: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """The drops around this mean, and their weights.

        With half a sample more than was seen: no change in few samples is not proof of none in many.
        """
        count = int(self.counts.sum())
        centred = self.drops - self.counts @ self.drops / count
        largest = float(np.abs(centred).max()) or self.most
        drops = np.clip(np.concatenate([centred, [largest, -largest]]) + mean, -self.most, self.most)
        return drops, np.concatenate([self.counts, [0.25, 0.25]]) / (count + 0.5)


def log_wealth(drops: NDArray[Any], counts: NDArray[Any], margin: float, most: float) -> float:
    """The log of what 1 has become by betting on each sample that the mean is below `margin`.

    A player gains in proportion to how far below the margin a sample is, and at a drop of `most`, the worst there is,
    loses no more than the stake. So the wealth is never negative, and at a mean of `margin` it is a fair game.
    """
    return _mixed(counts @ _log_factors(drops, margin, most))


def _log_factors(drops: NDArray[Any], margin: float, most: float) -> NDArray[Any]:
    odds = np.maximum((margin - drops) / (most - margin), -1.0)
    with np.errstate(divide="ignore"):
        logs: NDArray[Any] = np.log1p(np.outer(odds, _STAKES))
    return logs


def _reached(growth: tuple[NDArray[Any], NDArray[Any]], samples: int) -> float:
    """What the log wealth comes to in 92 of 100 draws of so many samples."""
    mean, deviation = growth
    return _mixed(samples * mean - statistics.NormalDist().inv_cdf(POWER) * math.sqrt(samples) * deviation)


def _mixed(logs: NDArray[Any]) -> float:
    """The log of the players' wealth together, which is 1 at the start."""
    return float(np.logaddexp.reduce(logs + np.log(_PURSES))) - math.log(sum(_PURSES))


def _highest(drops: NDArray[Any], counts: NDArray[Any], most: float, alpha: float) -> float:
    """The bound of the mean from above. The wealth at the mean itself is below 1: no bound excludes what was seen."""
    mean, line = float(counts @ drops / counts.sum()), -math.log(alpha)
    found = _edge(lambda margin: log_wealth(drops, counts, margin, most) >= line, mean, most)
    return most if found is None else found


def _edge(beyond: Callable[[float], bool], near: float, far: float) -> float | None:
    """Where `beyond` turns true between `near` (false) and `far`; None if it does not."""
    end = far
    for _ in range(_STEPS):
        middle = (near + far) / 2
        if not near < middle < far:
            break
        near, far = (near, middle) if beyond(middle) else (middle, far)
    return None if far == end else far


def _smallest(enough: Callable[[int], bool]) -> int | None:
    high = MIN_SAMPLES
    while not enough(high):
        high *= 2
        if high > _MOST_SAMPLES:
            return None
    low = high // 2 if high > MIN_SAMPLES else MIN_SAMPLES - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
