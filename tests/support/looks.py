"""Every look of many comparisons at once: what `Judge` would say after each unit, without the legs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from modelwright.judge import equate_floor, min_units
from modelwright.judge._evidence import log_evidence, pseudo_median

_CHUNK = 400_000


@dataclass(frozen=True)
class Looks:
    """Booleans (runs, units): the verdict after that many units."""

    improved: np.ndarray
    regressed: np.ndarray
    equivalent: np.ndarray

    def false_claims(self) -> float:
        """Share of runs that said improved or regressed at any look."""
        return float((self.improved | self.regressed).any(axis=-1).mean())


def looks(
    ratios: np.ndarray, min_effect: float = 0.02, alpha: float = 0.05, averages: np.ndarray | None = None
) -> Looks:
    """The verdict at each look of each run of log ratios (runs, units); `averages` are those of the legs' means."""
    averages = ratios if averages is None else averages
    rows = max(1, _CHUNK // ratios.shape[-1] ** 2)
    parts = [
        _looks(ratios[i : i + rows], averages[i : i + rows], min_effect, alpha) for i in range(0, len(ratios), rows)
    ]
    return Looks(*(np.concatenate([getattr(p, name) for p in parts]) for name in Looks.__dataclass_fields__))


def first_look(said: np.ndarray) -> np.ndarray:
    """Units after which each run first said it; infinite when never."""
    return np.where(said.any(axis=-1), said.argmax(axis=-1) + 1, np.inf)


def _looks(ratios: np.ndarray, averages: np.ndarray, min_effect: float, alpha: float) -> Looks:
    above, below = _excluded(ratios, 0.0, alpha)
    above_lower, _ = _excluded(ratios, math.log1p(-min_effect), alpha)
    _, below_upper = _excluded(ratios, math.log1p(min_effect), alpha)
    count = np.arange(1, ratios.shape[-1] + 1)
    enough = count >= min_units(alpha)
    within = above_lower & below_upper
    near = within & _average_inside(averages, min_effect) & (count >= equate_floor(alpha))
    proven = (above | below) & ~within & enough
    told = proven & ~_is_slight(ratios, proven, min_effect)
    return Looks(above & told, below & told, near)


def _is_slight(ratios: np.ndarray, asked: np.ndarray, min_effect: float) -> np.ndarray:
    """Whether the estimate is less than half of the smallest effect of interest; found out where it is asked."""
    slight = np.zeros_like(asked)
    for run, look in zip(*np.nonzero(asked), strict=True):
        slight[run, look] = abs(math.expm1(pseudo_median(ratios[run, : look + 1]))) < min_effect / 2
    return slight


def _average_inside(averages: np.ndarray, min_effect: float) -> np.ndarray:
    """Whether the mean so far, with three standard errors, is inside the zone."""
    count = np.arange(1, averages.shape[-1] + 1)
    mean = np.cumsum(averages, axis=-1) / count
    around = np.maximum(np.cumsum(averages**2, axis=-1) / count - mean**2, 0.0)
    error = 3.0 * np.sqrt(around / np.maximum(count - 1, 1))
    return (mean - error > math.log1p(-min_effect)) & (mean + error < math.log1p(min_effect))


def _excluded(ratios: np.ndarray, centre: float, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    line = math.log(2 / alpha)
    above, below = log_evidence(ratios, centre)
    return np.maximum.accumulate(above >= line, axis=-1), np.maximum.accumulate(below >= line, axis=-1)
