"""One leg: the samples of one arm in one unit, checked; two legs: what one unit says."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Burst = Sequence[float] | Floats
    Samples = Burst | Sequence[Burst]
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


@dataclass(frozen=True, eq=False)
class Leg:
    """The samples of one arm in one unit. The burst at each place was taken next to the other leg's at that place."""

    bursts: tuple[Floats, ...]

    @property
    def samples(self) -> Floats:
        return np.concatenate(self.bursts)


def unit(one: Samples, other: Samples, names: tuple[str, str]) -> tuple[Leg, Leg]:
    """Both legs of a unit, each a list of times or a list of bursts of them, checked."""
    legs = _checked(one, names[0]), _checked(other, names[1])
    counts = [len(leg.bursts) for leg in legs]
    if counts[0] != counts[1]:
        raise _bad(names[1], f"it has {counts[1]} bursts and the {names[0]} leg {counts[0]}")
    return legs


def _checked(samples: Samples, name: str) -> Leg:
    try:
        bursts = samples if np.ndim(samples[0]) > 0 else (samples,)
    except (TypeError, ValueError, LookupError):  # no list at all: the burst's own check has the words
        bursts = (samples,)
    return Leg(tuple(_checked_burst(burst, name) for burst in bursts))


def _checked_burst(samples: object, name: str) -> Floats:
    try:
        values = np.asarray(samples, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise _bad(name, "a sample is not a number") from error
    if values.ndim != 1:
        raise _bad(name, f"expected a list of times or of bursts, got {values.ndim} dimensions in a burst")
    if values.size == 0:
        raise _bad(name, "it has no samples")
    wrong = ~(np.isfinite(values) & (values > 0))
    if wrong.any():
        where = int(np.argmax(wrong))
        raise _bad(name, f"sample {where} is {values[where]}; times are positive and finite")
    return values


def log_ratio(above: Leg, below: Leg, quantile: float) -> float:
    """What a unit says: the median over pairs of neighbouring bursts, between which the machine hardly changes its
    speed. A burst does not hold a tail, so that is the ratio of the whole legs'."""
    if _is_tail(quantile):
        return _log_level(above.samples, quantile) - _log_level(below.samples, quantile)
    return float(np.median(_by_pair(above, below, lambda burst: _log_level(burst, quantile))))


def average_ratio(above: Leg, below: Leg, quantile: float) -> float:
    """The same with nothing left out, so that a second mode shows which the medians do not see: the mean over all
    pairs, and for a quantile that stands for all runs their mean instead of the quantile."""
    if _is_tail(quantile):
        return log_ratio(above, below, quantile)
    level = _log_average if is_central(quantile) else lambda burst: _log_level(burst, quantile)
    return float(np.mean(_by_pair(above, below, level)))


def _by_pair(above: Leg, below: Leg, level: Callable[[Floats], float]) -> list[float]:
    return [level(one) - level(other) for one, other in zip(above.bursts, below.bursts, strict=True)]


def _log_level(samples: Floats, quantile: float) -> float:
    return math.log(float(np.quantile(samples, quantile)))


def _log_average(samples: Floats) -> float:
    """The log of the mean without the slowest fiftieth."""
    return math.log(float(np.mean(np.sort(samples)[: samples.size - round(_SLOWEST * samples.size)])))


def _is_tail(quantile: float) -> bool:
    return quantile > _CENTRAL[1]


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


def is_bimodal(leg: Leg, other: Leg) -> bool:
    """Two separate modes, so that the typical time is a toss between them. Each burst counts relative to its neighbour
    of the other leg: when the machine changes its speed both change, and that is no mode of this leg."""
    pairs = zip(leg.bursts, other.bursts, strict=True)
    return has_two_modes(np.concatenate([np.log(burst) - _log_level(beside, 0.5) for burst, beside in pairs]))


def has_two_modes(logs: Floats) -> bool:
    """Both hold a fifth of the samples or more, lie 10 % apart or more and four spreads or more (eight with
    few samples), and the middle between them is nearly empty. Skew, tails and drift fill the middle."""
    if logs.size < _MIN_SAMPLES:
        return False
    logs = np.sort(logs)
    split = _best_split(logs)
    fast, slow = float(np.median(logs[:split])), float(np.median(logs[split:]))
    gap = slow - fast
    spreads = _MODE_SPREADS if logs.size >= _ENOUGH_SAMPLES else _MODE_SPREADS_IF_FEW
    if gap < _MODE_GAP or gap < spreads * max(spread(logs[:split]), spread(logs[split:])):
        return False
    middle = np.count_nonzero((logs > fast + gap / 4) & (logs < slow - gap / 4))
    return bool(middle <= math.floor(_VALLEY_SHARE * logs.size))


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
