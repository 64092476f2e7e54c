"""The baseline against itself: what shows that sessions do not run alike."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.judge import _evidence, _legs

if TYPE_CHECKING:
    import numpy as np

    from modelwright.judge._legs import Samples
else:
    np = lazy("numpy")

SENTINEL_ALPHA = 0.05


class Sentinel:
    """A/A units, measured exactly as all others are. Judges of one baseline share one."""

    def __init__(self, min_effect: float, quantile: float) -> None:
        self._min_effect, self._quantile = min_effect, quantile
        self._units: list[float] = []
        self._shift: float | None = None

    def __len__(self) -> int:
        return len(self._units)

    def add(self, first: Samples, second: Samples) -> None:
        """One unit: the baseline in the first slot and in the second, in that order, so that a favoured slot shows."""
        legs = _legs.unit(first, second, ("first", "second"))
        self._units.append(_legs.log_ratio(*legs, self._quantile))
        self._shift = self._favoured()

    @property
    def shift(self) -> float | None:
        """By how much a slot is favoured, once that is proven to be more than the smallest effect of interest.

        The coin makes noise of any such favour; one this large says that the sessions do not run alike.
        """
        return self._shift

    def _favoured(self) -> float | None:
        units = np.array(self._units)
        bounds = _evidence.confidence_bounds(units, SENTINEL_ALPHA)
        above = bounds.low is not None and math.expm1(bounds.low) > self._min_effect
        below = bounds.high is not None and math.expm1(bounds.high) < -self._min_effect
        return math.expm1(_evidence.pseudo_median(units)) if above or below else None
