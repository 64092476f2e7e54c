"""Numbers in slices (channels, columns) of different sizes: each against its own scale, so that none hides another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pairs = Sequence[tuple[NDArray[Any], NDArray[Any]]]
else:
    np = lazy("numpy")

# With fewer numbers in a slice its spread is unknown.
FEWEST = 8
# With so many, one of them (a pitch that is an octave off for one voice) does not decide.
_ENOUGH = 24
# Columns of a head each mean something; among many channels some are always as good as dead.
_HEAD = 16
# The scale of a slice is its spread, but never below these shares of the largest one's and of its own level:
# what is constant in the export has rounding noise, and nothing else, in an artifact that is fine.
_SHARE_OF_MANY, _SHARE_OF_FEW, _SHARE_OF_LEVEL = 0.1, 1e-3, 1e-3
_NOTHING = 1e-4
# Of numbers of one kind, which have no others beside them: what does not move by this share of its level is constant.
_SHARE_OF_ONE = 0.02


@dataclass(frozen=True)
class Worst:
    """The slice that lost most: its error against its scale, in dB; None where nothing differs."""

    index: int
    count: int
    sqnr_db: float | None


def worst_slice(pairs: Pairs, axis: int, *, together: bool = False) -> Worst:
    """Over all samples and places; the mean of a slice is no signal, and one number does not speak for its slice.

    What is used `together`, as a sum, has errors as large as a usual slice at worst, however small a slice is.
    """
    # A sample may have nothing of what is looked at: no object in a picture.
    rows = [(_by_slice(one, axis), _by_slice(other, axis)) for one, other in pairs if one.size]
    count = sum(one.shape[1] for one, _ in rows)
    mean = sum(one.sum(axis=1) for one, _ in rows) / count
    power = sum(((one - mean[:, None]) ** 2).sum(axis=1) for one, _ in rows)
    noise = sum(((other - one) ** 2).sum(axis=1) for one, other in rows)
    if count >= _ENOUGH:
        noise = _without_one(rows, mean, power, noise)
    spread, error = np.sqrt(power / count), np.sqrt(noise / count)
    share = _SHARE_OF_FEW if len(spread) <= _HEAD else _SHARE_OF_MANY
    least = np.sqrt(np.mean(spread**2)) if together else share * spread.max()
    floor = np.maximum(least, _SHARE_OF_LEVEL * np.abs(mean))
    off = error / np.maximum(np.maximum(spread, floor), _NOTHING * (float(spread.max()) == 0.0) or 1e-30)
    index = int(off.argmax())
    return Worst(index, len(off), decibels(float(off[index])))


def _without_one(rows: Pairs, mean: NDArray[Any], power: NDArray[Any], noise: NDArray[Any]) -> NDArray[Any]:
    """The noise of each slice less its largest error, where that number is not what the slice has to say."""
    largest, its_power = np.zeros_like(noise), np.zeros_like(noise)
    for one, other in rows:
        errors = (other - one) ** 2
        place = errors.argmax(axis=1)[:, None]
        found = np.take_along_axis(errors, place, axis=1)[:, 0]
        said = np.take_along_axis((one - mean[:, None]) ** 2, place, axis=1)[:, 0]
        its_power = np.where(found > largest, said, its_power)
        largest = np.maximum(found, largest)
    return np.where(its_power <= power / 2, noise - largest, noise)


def off_level(pairs: Pairs) -> float:
    """The error of numbers of one kind against how much they move."""
    wanted, got = (np.concatenate([pair[side].ravel() for pair in pairs]).astype(np.float64) for side in (0, 1))
    scale = max(float(wanted.std()), _SHARE_OF_ONE * abs(float(wanted.mean())), _NOTHING)
    return float(np.sqrt(np.mean((got - wanted) ** 2))) / scale


def decibels(off: float) -> float | None:
    """Of an error against the scale it is measured with."""
    return -20.0 * math.log10(off) if off > 0.0 else None


def _by_slice(values: NDArray[Any], axis: int) -> NDArray[Any]:
    """(slices, numbers), in float64; what is no number in both was taken out before."""
    return np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1).astype(np.float64)
