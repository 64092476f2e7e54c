"""How `wright eval` decided until commit 0c37fed, kept to be measured beside what it does now. Nothing else uses it.

Right or wrong: Tango's score bounds; other numbers: Hall's skew-corrected t; few changed samples: their share times the
span, or times the spread of the reference where there is no span.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

POWER = 0.92
MIN_CHANGED, MIN_REAL_SAMPLES = 10, 30
_UPPER, _LOWER = 0.5, 1.0


def verdict(reference: np.ndarray, candidate: np.ndarray, margin: float, span: float | None, alpha: float) -> str:
    drops = reference - candidate
    if np.isin(reference, (0.0, 1.0)).all() and np.isin(candidate, (0.0, 1.0)).all():
        return _right_or_wrong(int((drops > 0).sum()), int((drops < 0).sum()), len(drops), margin, alpha)
    changed = int(np.count_nonzero(drops))
    if changed < MIN_CHANGED:
        wide = span if span is not None else float(np.ptp(reference)) or abs(float(reference.mean()))
        limit = wide * _share_bound(changed, len(drops), alpha)
        return _word(-limit, limit, margin)
    if len(drops) < MIN_REAL_SAMPLES:
        return "inconclusive"
    return _word(*_mean_bounds(drops, alpha), margin)


def needed(margin: float, disagreement: float, *, drop: float = 0.0, alpha: float = 0.05) -> int:
    """Right or wrong: samples that place a true `drop` on its side of the margin with 90 % power."""
    share = min(1.0, max(disagreement, abs(drop), 1e-12))
    lost, gained = (share + drop) / 2, (share - drop) / 2
    z_alpha, z_power = NormalDist().inv_cdf(1 - alpha), NormalDist().inv_cdf(POWER)
    null, real = math.sqrt(_variance(lost, gained, 1.0, margin)), math.sqrt(max(share - drop * drop, 0.0))
    correction = 0.5 + (_UPPER if drop < margin else _LOWER)
    samples = 1
    while samples * abs(margin - drop) - correction < (z_alpha * null + z_power * real) * math.sqrt(samples):
        samples += 1
    return samples


def _word(low: float, high: float, margin: float) -> str:
    return "pass" if high < margin else "fail" if low > margin else "inconclusive"


def _right_or_wrong(lost: int, gained: int, samples: int, margin: float, alpha: float) -> str:
    z = NormalDist().inv_cdf(1 - alpha)
    if _excess(lost, gained, samples, margin, _UPPER) < -z:
        return "pass"
    return "fail" if _excess(lost, gained, samples, margin, -_LOWER) > z else "inconclusive"


def _excess(lost: float, gained: float, samples: float, drop: float, correction: float) -> float:
    variance = samples * _variance(lost, gained, samples, drop)
    distance = lost - gained - samples * drop + correction
    if variance <= 0.0:
        return math.copysign(math.inf, distance) if distance else 0.0
    return distance / math.sqrt(variance)


def _variance(lost: float, gained: float, samples: float, drop: float) -> float:
    a, c = 2 * samples, -gained * drop * (1 - drop)
    b = -lost - gained + (2 * samples - lost + gained) * drop
    rest = (math.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
    return max(2 * rest + drop * (1 - drop), 0.0)


def _mean_bounds(drops: np.ndarray, alpha: float) -> tuple[float, float]:
    count, centre, spread = len(drops), float(drops.mean()), float(drops.std())
    skew = float(((drops - centre) ** 3).mean()) / spread**3 if spread else 0.0
    quantile, error = _student(1 - alpha, count - 1), float(drops.std(ddof=1)) / math.sqrt(count)
    return centre - error * _unskewed(quantile, skew, count), centre - error * _unskewed(-quantile, skew, count)


def _unskewed(quantile: float, skew: float, count: int) -> float:
    scaled = skew / math.sqrt(count)
    if abs(scaled) < 1e-9:
        return quantile
    return (float(np.cbrt(1 + scaled * (quantile - scaled / 6))) - 1) * 3 / scaled


def _student(probability: float, freedom: int) -> float:
    z = NormalDist().inv_cdf(probability)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    fourth = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    return z + first / freedom + second / freedom**2 + third / freedom**3 + fourth / freedom**4


def _share_bound(changed: int, samples: int, alpha: float) -> float:
    if changed >= samples:
        return 1.0
    return _edge(lambda share: _at_most(changed, samples, share) < alpha, changed / samples, 1.0)


def _at_most(changed: int, samples: int, share: float) -> float:
    logs = (
        math.lgamma(samples + 1) - math.lgamma(k + 1) - math.lgamma(samples - k + 1)
        + k * math.log(share) + (samples - k) * math.log1p(-share)
        for k in range(changed + 1)
    )  # fmt: skip
    return math.fsum(math.exp(value) for value in logs)


def _edge(beyond: Callable[[float], bool], near: float, far: float) -> float:
    for _ in range(40):
        middle = (near + far) / 2
        near, far = (near, middle) if beyond(middle) else (middle, far)
    return far
