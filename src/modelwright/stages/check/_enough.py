"""When one answer of a simulator says as much as several would: a run of it costs more than all the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.stages.validate import CLOSE, FEWEST, Measure, OutputParity, slice_axis

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

# So many numbers that each count do not agree by chance. The scores of a classifier that is sure of one class are one.
_MANY = 64
# Of a sample: numbers that differ, or words of a sentence; what stands for none has one or two.
_TOLD, _WORDS = 16, 8
# Of what is allowed; nearer to the bound another sample may decide otherwise. In decibels the same: half the power.
_CLEARLY, _CLEARLY_DB = 0.5, 3.0
Tensors = Mapping[str, Any]


def reach(feed: Tensors) -> float:
    """The largest number of a sample. The one that reaches farthest comes first: half floats end at 65,504, and what a
    smaller one shows says nothing about that."""
    floats = (one for one in map(np.asarray, feed.values()) if one.dtype.kind == "f" and one.size)
    return max((float(np.abs(one).max()) for one in floats), default=0.0)


def says_enough(feed: Tensors, answer: Tensors, samples: int) -> bool:
    """The sample is no blank, every output has many numbers, and no measure would need the other samples."""
    return _tells(feed.values()) and all(
        isinstance(values, np.ndarray) and values.dtype.kind == "f" and _many(values) and _sliced(values, samples)
        for values in answer.values()
    )


def _tells(taken: Iterable[Any]) -> bool:
    """A black picture or silence leaves most of a model unused, however many numbers it answers with."""
    arrays = [np.asarray(one) for one in taken]
    floats = [one for one in arrays if one.dtype.kind == "f"]
    if floats:
        return all(_many(one, _TOLD) for one in floats)
    return any(len(np.unique(one)) >= _WORDS for one in arrays)


def _many(values: NDArray[Any], least: int = _MANY) -> bool:
    """How many of them make up its spread: of N numbers around a mean a third of N, of one that towers over all one."""
    if not values.size or not np.isfinite(values).all():
        return False
    power = (values.astype(np.float64) - float(values.mean(dtype=np.float64))).ravel() ** 2
    spread = float(power.sum())
    return spread > 0.0 and spread**2 >= least * float(power @ power)


def _sliced(values: NDArray[Any], samples: int) -> bool:
    """A slice is judged where there are enough numbers in it; not in more of them for more samples."""
    axis = slice_axis(values)
    own = int(values.size // values.shape[axis]) if axis is not None else int(values.size)
    return own >= FEWEST or own * samples < FEWEST


def is_clear(outputs: Sequence[OutputParity]) -> bool:
    """It passed, and not narrowly."""
    return bool(outputs) and all(item.identical or (item.reason is None and _far(item)) for item in outputs)


def _far(item: OutputParity) -> bool:
    return any(measure.name == CLOSE for measure in item.measures) and all(map(_clearly, item.measures))


def _clearly(measure: Measure) -> bool:
    """A share that nobody could ask for says nothing about the next sample; no difference at all says much."""
    if measure.value is None or not measure.passed:
        return measure.passed and measure.decibels
    if measure.decibels:
        return measure.value >= measure.bound + _CLEARLY_DB
    return 1.0 - measure.value <= _CLEARLY * (1.0 - measure.bound)
