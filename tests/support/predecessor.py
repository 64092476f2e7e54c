"""The verdict rules of the public search this project started from, to be put beside ours.

Each takes session medians (p50) in ms along the last axis and says, per comparison, whether the
candidate is claimed to be faster. `either_way` asks in both directions, since ours is two-sided too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

MIN_GAIN = 5.0


def upper_median(values: np.ndarray) -> np.ndarray:
    """Their median: element n // 2 of the sorted list."""
    return np.sort(values, axis=-1)[..., values.shape[-1] // 2]


def gain(base: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    """Percent of the baseline's median saved."""
    reference = upper_median(base)
    return (reference - upper_median(candidate)) / reference * 100


def session_cv(sessions: np.ndarray) -> np.ndarray:
    """Sample deviation over mean of the session medians."""
    if sessions.shape[-1] < 2:
        return np.zeros(sessions.shape[:-1])
    return sessions.std(axis=-1, ddof=1) / sessions.mean(axis=-1)


def throughput_only(gain_percent: np.ndarray, screen_cv_percent: np.ndarray) -> np.ndarray:
    """0 DISCARD, 1 MARGINAL_KEEP, 2 KEEP."""
    threshold = np.maximum(1.0, 2.0 * screen_cv_percent)
    return (gain_percent >= threshold).astype(int) + (gain_percent >= 1.5 * threshold)


def sweep_median(base: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    """KEEP."""
    return gain(base, candidate) >= MIN_GAIN


def effect_gate(base: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    """RELIABLE: the gain beats twice the session spread and the ranges are apart."""
    floor = 2 * np.maximum(session_cv(base), session_cv(candidate)) * 100
    apart = candidate.max(axis=-1) < base.min(axis=-1)
    return (gain(base, candidate) >= floor) & apart


def phase_c(base: np.ndarray, champion: np.ndarray) -> np.ndarray:
    """CONFIRMED or CONFIRMED_WEAK from interleaved rounds."""
    won = (base - champion > 0).mean(axis=-1) >= 0.66
    return won & (gain(base, champion) >= MIN_GAIN)


def paired(base: np.ndarray, candidate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(KEEP_CONFIRMED, DISCARD) from percent gains and a normal interval."""
    gains = (base - candidate) / base * 100
    half = 1.96 * gains.std(axis=-1, ddof=1) / np.sqrt(gains.shape[-1])
    return gains.mean(axis=-1) - half > 5, gains.mean(axis=-1) + half < -2


def adaptive_paired(base: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    """Any claim of a difference, looking from 3 pairs on."""
    claimed = np.zeros(base.shape[:-1], dtype=bool)
    for pairs in range(3, base.shape[-1] + 1):
        keep, discard = paired(base[..., :pairs], candidate[..., :pairs])
        claimed |= keep | discard
    return claimed


def either_way(
    rule: Callable[[np.ndarray, np.ndarray], np.ndarray], base: np.ndarray, candidate: np.ndarray
) -> np.ndarray:
    """A claim in one direction or the other."""
    return rule(base, candidate) | rule(candidate, base)
