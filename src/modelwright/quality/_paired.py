"""Is the candidate worse than allowed? Paired non-inferiority on per-sample scores. Pure: numbers in, bounds out.

docs/eval.md says why these methods, and bench/eval_power.py measures how often they err.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

# 90 % is promised; the disagreement it is computed from is itself an estimate, so a little more is aimed at.
POWER = 0.92
# Fewer differing samples than this say nothing about the shape of the differences.
MIN_CHANGED = 10
# Below this the skewness of real-valued differences cannot be estimated, and no verdict is given.
MIN_REAL_SAMPLES = 30
_MOST_SAMPLES = 10**9
_STEPS = 60
# Tango's statistic is approximate; drawn back by so many samples, its exact error stays below alpha (see the docs).
_UPPER_CORRECTION, _LOWER_CORRECTION = 0.5, 1.0


class EvalVerdict(StrEnum):
    """The only words for accuracy."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Bounds:
    """The drop (how much worse the candidate is) is above `low`, and below `high`, each with probability 1 - alpha."""

    low: float
    high: float

    def verdict(self, margin: float) -> EvalVerdict:
        if self.high < margin:
            return EvalVerdict.PASS
        return EvalVerdict.FAIL if self.low > margin else EvalVerdict.INCONCLUSIVE


@dataclass(frozen=True)
class Paired:
    """Bounds of the drop with what they were computed from.

    `needed` samples decide about `margin` with 90 % power: that many pass a candidate that lost nothing. `resolves` is
    the smallest margin that the samples at hand can decide about in that sense.
    """

    method: str
    samples: int
    changed: int
    alpha: float
    low: float
    high: float
    margin: float | None
    needed: int | None
    resolves: float | None
    verdict: EvalVerdict | None


def paired(
    reference: NDArray[Any],
    candidate: NDArray[Any],
    *,
    margin: float | None,
    relative: bool = False,
    span: float | None = None,
    alpha: float = 0.05,
) -> Paired:
    """Compare scores of the same samples, where more is better.

    With `relative` the margin is a share of the reference's mean. `span` is the range of a score, where it has one.
    """
    reference, candidate = np.asarray(reference, np.float64), np.asarray(candidate, np.float64)
    mean = float(reference.mean())
    allowed = None if margin is None else margin * abs(mean) if relative else margin
    test = _choose(reference, candidate, margin if relative and margin is not None else 0.0, span, alpha)
    bounds = test.bounds()
    return Paired(
        method=test.method,
        samples=len(reference),
        changed=int(np.count_nonzero(reference != candidate)),
        alpha=alpha,
        low=bounds.low,
        high=bounds.high,
        margin=allowed,
        needed=test.needed(allowed) if allowed else None,
        resolves=test.resolves(),
        verdict=None if allowed is None else _verdict(test, bounds, allowed, len(reference)),
    )


def binary_bounds(lost: int, gained: int, samples: int, alpha: float = 0.05) -> Bounds:
    """Tango's score bounds for a paired difference of shares, (lost - gained) / samples, continuity corrected."""
    z = NormalDist().inv_cdf(1 - alpha)
    middle = (lost - gained) / samples

    def upper(drop: float) -> bool:
        return _excess(lost, gained, samples, drop, _UPPER_CORRECTION) < -z

    def lower(drop: float) -> bool:
        return _excess(lost, gained, samples, drop, -_LOWER_CORRECTION) > z

    return Bounds(low=_edge(lower, middle, -1.0), high=_edge(upper, middle, 1.0))


def binary_needed(
    margin: float, disagreement: float, *, drop: float = 0.0, alpha: float = 0.05, power: float = POWER
) -> int:
    """Samples that place a true `drop` on its side of the margin, when this share of them comes out differently."""
    share = min(1.0, max(disagreement, abs(drop), 1e-12))
    lost, gained = (share + drop) / 2, (share - drop) / 2
    z_alpha, z_power = NormalDist().inv_cdf(1 - alpha), NormalDist().inv_cdf(power)
    null = math.sqrt(_variance(lost, gained, 1.0, margin))
    real = math.sqrt(max(share - drop * drop, 0.0))
    # Another half sample, because what is lost and gained is counted in whole ones.
    correction = 0.5 + (_UPPER_CORRECTION if drop < margin else _LOWER_CORRECTION)

    def enough(samples: int) -> bool:
        gap = samples * abs(margin - drop) - correction - z_alpha * null * math.sqrt(samples)
        return gap >= z_power * real * math.sqrt(samples)

    return _smallest(enough)


@dataclass(frozen=True)
class Shape:
    """Of real-valued differences: standard deviation, skewness (0 when symmetric) and kurtosis (3 when normal)."""

    deviation: float
    skew: float = 0.0
    kurtosis: float = 3.0

    @classmethod
    def of(cls, drops: NDArray[Any]) -> Shape:
        centred = drops - drops.mean()
        spread = float(drops.std())
        if spread == 0.0:
            return cls(0.0)
        moments = [float((centred**power).mean()) / spread**power for power in (3, 4)]
        return cls(float(drops.std(ddof=1)), *moments)

    def reach(self, samples: int, alpha: float, power: float, *, upper: bool) -> float:
        """How far from the margin, in standard errors, a true drop is placed on its side with this power.

        The bound's distance from the mean, and the scatter of the bound itself: with a skew, mean and deviation move
        together, so the bound scatters more on one side than on the other.
        """
        skew = self.skew if upper else -self.skew
        bound = -_unskewed(-student_quantile(1 - alpha, samples - 1), skew, samples)
        scatter = 1 + bound * skew / math.sqrt(samples) + bound**2 * (self.kurtosis - 1) / (4 * samples)
        return bound + NormalDist().inv_cdf(power) * math.sqrt(max(scatter, 1.0))


def mean_bounds(drops: NDArray[Any], alpha: float = 0.05) -> Bounds:
    """One-sided bounds of a mean by Hall's transformation, which takes the skewness out of Student's t."""
    count, centre, shape = len(drops), float(drops.mean()), Shape.of(drops)
    quantile = student_quantile(1 - alpha, count - 1)
    error = shape.deviation / math.sqrt(count)
    low, high = (centre - error * _unskewed(side * quantile, shape.skew, count) for side in (1, -1))
    return Bounds(low, high)


def mean_needed(margin: float, shape: Shape, *, drop: float = 0.0, alpha: float = 0.05, power: float = POWER) -> int:
    """Samples that place a true `drop` on its side of the margin, when the differences scatter like this."""

    def enough(samples: int) -> bool:
        if samples < MIN_REAL_SAMPLES:
            return False
        wanted = shape.reach(samples, alpha, power, upper=drop < margin) * shape.deviation
        return math.sqrt(samples) * abs(margin - drop) >= wanted

    return _smallest(enough)


def share_bound(changed: int, samples: int, alpha: float = 0.05) -> float:
    """Clopper and Pearson's upper bound of a share."""
    if changed >= samples:
        return 1.0
    return _edge(lambda share: _at_most(changed, samples, share) < alpha, changed / samples, 1.0)


def student_quantile(probability: float, freedom: int) -> float:
    """Student's quantile by Fisher's expansion; within 1e-3 from 5 degrees of freedom on."""
    z = NormalDist().inv_cdf(probability)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    fourth = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    return z + first / freedom + second / freedom**2 + third / freedom**3 + fourth / freedom**4


def _verdict(test: _Test, bounds: Bounds, allowed: float, samples: int) -> EvalVerdict:
    if isinstance(test, _RealValued) and samples < MIN_REAL_SAMPLES:
        return EvalVerdict.INCONCLUSIVE
    return bounds.verdict(allowed)


class _Test(Protocol):
    method: ClassVar[str]

    def bounds(self) -> Bounds: ...
    def needed(self, margin: float) -> int: ...
    def resolves(self) -> float | None: ...


@dataclass(frozen=True)
class _RightOrWrong:
    """Scores that are 0 or 1: only the samples on which the two differ count."""

    lost: int
    gained: int
    samples: int
    alpha: float
    method: ClassVar[str] = "tango"

    def bounds(self) -> Bounds:
        return binary_bounds(self.lost, self.gained, self.samples, self.alpha)

    def needed(self, margin: float) -> int:
        # Half a sample more than was seen: no disagreement in few samples is not proof of none in many.
        disagreement = (self.lost + self.gained + 0.5) / (self.samples + 1)
        return binary_needed(margin, disagreement, alpha=self.alpha)

    def resolves(self) -> float | None:
        if self.needed(1.0) > self.samples:
            return None
        return _edge(lambda margin: self.needed(margin) <= self.samples, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class _RealValued:
    """Scores of any size. `moved` is the mean part of a relative margin, added back to the tested drops."""

    drops: NDArray[Any]
    moved: float
    alpha: float
    method: ClassVar[str] = "skew-corrected t"

    @property
    def shape(self) -> Shape:
        return Shape.of(self.drops)

    def bounds(self) -> Bounds:
        found = mean_bounds(self.drops, self.alpha)
        return Bounds(found.low + self.moved, found.high + self.moved)

    def needed(self, margin: float) -> int:
        return mean_needed(margin, self.shape, alpha=self.alpha)

    def resolves(self) -> float | None:
        count, shape = len(self.drops), self.shape
        return shape.reach(count, self.alpha, POWER, upper=True) * shape.deviation / math.sqrt(count)


@dataclass(frozen=True, eq=False)
class _FewChanged:
    """Nearly all samples score the same: then only how many changed is known, not what a change costs."""

    changed: int
    samples: int
    span: float
    shape: Shape
    alpha: float
    method: ClassVar[str] = "share of changed samples"

    def bounds(self) -> Bounds:
        limit = self.span * share_bound(self.changed, self.samples, self.alpha)
        return Bounds(-limit, limit)

    def needed(self, margin: float) -> int:
        if self.changed == 0:
            return math.ceil(math.log(self.alpha) / math.log1p(-min(margin / self.span, 0.999))) if self.span else 1
        enough_changes = math.ceil(self.samples * MIN_CHANGED / self.changed)
        return max(enough_changes, mean_needed(margin, self.shape, alpha=self.alpha))

    def resolves(self) -> float | None:
        return self.bounds().high


def _choose(reference: NDArray[Any], candidate: NDArray[Any], share: float, span: float | None, alpha: float) -> _Test:
    drops, mean = reference - candidate, float(reference.mean())
    if _is_right_or_wrong(reference) and _is_right_or_wrong(candidate):
        return _RightOrWrong(int((drops > 0).sum()), int((drops < 0).sum()), len(drops), alpha)
    changed = int(np.count_nonzero(drops))
    if changed < MIN_CHANGED:
        wide = span if span is not None else float(np.ptp(reference)) or abs(mean)
        return _FewChanged(changed, len(drops), wide, Shape.of(drops), alpha)
    # A relative margin is itself measured: test drop - share x reference, then move back by what is allowed.
    return _RealValued(drops - math.copysign(share, mean) * reference, share * abs(mean), alpha)


def _is_right_or_wrong(scores: NDArray[Any]) -> bool:
    return bool(np.isin(scores, (0.0, 1.0)).all())


def _excess(lost: float, gained: float, samples: float, drop: float, correction: float) -> float:
    """Tango's statistic for a true drop: how far the seen one is above it, in standard errors."""
    variance = samples * _variance(lost, gained, samples, drop)
    distance = lost - gained - samples * drop + correction
    if variance <= 0.0:
        return math.copysign(math.inf, distance) if distance else 0.0
    return distance / math.sqrt(variance)


def _variance(lost: float, gained: float, samples: float, drop: float) -> float:
    """Of one difference, with the nuisance at its most likely value under `drop`."""
    a = 2 * samples
    b = -lost - gained + (2 * samples - lost + gained) * drop
    c = -gained * drop * (1 - drop)
    rest = (math.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
    return max(2 * rest + drop * (1 - drop), 0.0)


def _unskewed(quantile: float, skew: float, count: int) -> float:
    """The inverse of Hall's cubic transformation of t."""
    scaled = skew / math.sqrt(count)
    if abs(scaled) < 1e-9:
        return quantile
    return (float(np.cbrt(1 + scaled * (quantile - scaled / 6))) - 1) * 3 / scaled


def _at_most(changed: int, samples: int, share: float) -> float:
    """The binomial probability of `changed` or fewer."""
    logs = (
        math.lgamma(samples + 1) - math.lgamma(k + 1) - math.lgamma(samples - k + 1)
        + k * math.log(share) + (samples - k) * math.log1p(-share)
        for k in range(changed + 1)
    )  # fmt: skip
    return math.fsum(math.exp(value) for value in logs)


def _edge(beyond: Callable[[float], bool], near: float, far: float) -> float:
    """Where `beyond` turns true between `near` (false) and `far`."""
    for _ in range(_STEPS):
        middle = (near + far) / 2
        if not -1.0 < middle < 1.0:
            break
        near, far = (near, middle) if beyond(middle) else (middle, far)
    return far


def _smallest(enough: Callable[[int], bool]) -> int:
    high = 1
    while not enough(high) and high < _MOST_SAMPLES:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
