"""One leg: the samples of one arm in one unit, checked and reduced to one number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Samples = Sequence[float] | Floats
else:
    np = lazy("numpy")

_MIN_SAMPLES = 8
_ENOUGH_SAMPLES = 16
_MODE_SHARE = 0.2
_MODE_GAP = math.log(1.10)
_MODE_SPREADS = 4.0
_MODE_SPREADS_IF_FEW = 8.0
_VALLEY_SHARE = 1 / 25
_TIED_SHARE = 0.5
_SLOWEST = 0.02
_CENTRAL = (0.25, 0.75)


def checked(samples: Samples, name: str) -> Floats:
    """The samples as an array of positive, finite times."""
    try:
        values = np.asarray(samples, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise _bad(name, "a sample is not a number") from error
    if values.ndim != 1:
        raise _bad(name, f"expected a flat list of times, got {values.ndim} dimensions")
    if values.size == 0:
        raise _bad(name, "it has no samples")
    wrong = ~(np.isfinite(values) & (values > 0))
    if wrong.any():
        where = int(np.argmax(wrong))
        raise _bad(name, f"sample {where} is {values[where]}; times are positive and finite")
    return values


def log_level(samples: Floats, quantile: float) -> float:
    """The log of the leg's typical time."""
    return math.log(float(np.quantile(samples, quantile)))


def log_average(samples: Floats, quantile: float) -> float:
    """The log of what the runs took together, for a quantile that stands for them all: the mean without the slowest
    fiftieth, which sees a second mode that the median does not. Other quantiles stand for themselves."""
    if not is_central(quantile):
        return log_level(samples, quantile)
    kept = np.sort(samples)[: math.ceil((1 - _SLOWEST) * samples.size)]
    return math.log(float(np.mean(kept)))


def is_central(quantile: float) -> bool:
    return _CENTRAL[0] <= quantile <= _CENTRAL[1]


def ticks(samples: Floats) -> float | None:
    """How many ticks of the clock a run takes, where ticks can be seen: at least half of the samples are equal to
    another one. None where the clock is finer than the noise, and of a handful of samples."""
    if samples.size < _MIN_SAMPLES:
        return None
    values, counts = np.unique(samples, return_counts=True)
    if counts[counts > 1].sum() < _TIED_SHARE * samples.size:
        return None
    # All the same: the clock did not move at all between one run and the next.
    tick = float(np.diff(values).min()) if values.size > 1 else float(values[0])
    return float(np.median(samples)) / tick


def is_bimodal(samples: Floats) -> bool:
    """Two separate modes, so that the typical time is a toss between them.

    Both hold a fifth of the samples or more, lie 10 % apart or more and four spreads or more (eight with
    few samples), and the middle between them is nearly empty. Skew, tails and drift fill the middle.
    """
    if samples.size < _MIN_SAMPLES:
        return False
    logs = np.sort(np.log(samples))
    split = _best_split(logs)
    fast, slow = float(np.median(logs[:split])), float(np.median(logs[split:]))
    gap = slow - fast
    spreads = _MODE_SPREADS if samples.size >= _ENOUGH_SAMPLES else _MODE_SPREADS_IF_FEW
    if gap < _MODE_GAP or gap < spreads * max(spread(logs[:split]), spread(logs[split:])):
        return False
    middle = np.count_nonzero((logs > fast + gap / 4) & (logs < slow - gap / 4))
    return bool(middle <= math.floor(_VALLEY_SHARE * samples.size))


def spread(values: Floats) -> float:
    """A standard deviation that outliers do not move: the scaled median absolute deviation."""
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))


def _best_split(ordered: Floats) -> int:
    """Where two groups of sorted values differ most (one-dimensional 2-means)."""
    count = ordered.size
    smallest = math.ceil(_MODE_SHARE * count)
    sizes = np.arange(smallest, count - smallest + 1)
    sums = np.cumsum(ordered)
    left = sums[sizes - 1] / sizes
    right = (sums[-1] - sums[sizes - 1]) / (count - sizes)
    return int(sizes[np.argmax(sizes * (count - sizes) * (right - left) ** 2)])


def _bad(name: str, cause: str) -> InputError:
    return InputError(
        f"the {name} leg cannot be judged",
        cause=cause,
        fix="give both legs of the unit as lists of measured times; repeat the unit if a leg failed",
    )
