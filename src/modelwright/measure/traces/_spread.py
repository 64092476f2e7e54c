"""How far shares move from run to run, and which operators the runs do not tell apart. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.measure.traces._types import ShareSpread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

# Fewer runs than this have no spread to speak of.
MIN_RUNS = 5
_LOW, _HIGH = 5, 95


def shares_of_runs(samples_us: Sequence[Sequence[float | None]]) -> NDArray[Any]:
    """Rows of samples (None is a run without a call) as per cent of what all rows took in the same run."""
    times = np.array([[value or 0.0 for value in row] for row in samples_us], np.float64)
    whole = times.sum(axis=0)
    return 100 * times / np.where(whole > 0, whole, 1.0)


def spreads(shares: NDArray[Any]) -> list[ShareSpread | None]:
    """For each row of shares where nine runs in ten have it, and the ranks that this leaves open."""
    count, runs = shares.shape
    if runs < MIN_RUNS:
        return [None] * count
    low, high = np.percentile(shares, (_LOW, _HIGH), axis=1)
    first = 1 + count - np.searchsorted(np.sort(low), high, side="right")
    last = count - np.searchsorted(np.sort(high), low, side="left")
    return [
        ShareSpread(float(lowest), float(highest), int(best), int(worst))
        for lowest, highest, best, worst in zip(low, high, first, last, strict=True)
    ]
