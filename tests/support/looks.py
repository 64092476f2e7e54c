"""Every look of many comparisons at once: what `Judge` would say after each unit, without the legs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from modelwright.judge import min_units
from modelwright.judge._evidence import log_evidence

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


def looks(ratios: np.ndarray, min_effect: float = 0.02, alpha: float = 0.05) -> Looks:
    """The verdict at each look of each run of log ratios (runs, units)."""
    rows = max(1, _CHUNK // ratios.shape[-1] ** 2)
    parts = [_looks(ratios[i : i + rows], min_effect, alpha) for i in range(0, len(ratios), rows)]
    return Looks(*(np.concatenate([getattr(p, name) for p in parts]) for name in Looks.__dataclass_fields__))


def first_look(said: np.ndarray) -> np.ndarray:
    """Units after which each run first said it; infinite when never."""
    return np.where(said.any(axis=-1), said.argmax(axis=-1) + 1, np.inf)


def _looks(ratios: np.ndarray, min_effect: float, alpha: float) -> Looks:
    above, below = _excluded(ratios, 0.0, alpha)
    above_lower, _ = _excluded(ratios, math.log1p(-min_effect), alpha)
    _, below_upper = _excluded(ratios, math.log1p(min_effect), alpha)
    enough = np.arange(1, ratios.shape[-1] + 1) >= min_units(alpha)
    within = above_lower & below_upper
    return Looks(above & ~within & enough, below & ~within & enough, within & enough)


def _excluded(ratios: np.ndarray, centre: float, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    line = math.log(2 / alpha)
    above, below = log_evidence(ratios, centre)
    return np.maximum.accumulate(above >= line, axis=-1), np.maximum.accumulate(below >= line, axis=-1)
