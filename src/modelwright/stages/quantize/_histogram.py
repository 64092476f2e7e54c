"""Ranges that leave outliers out: a second pass fills one histogram per tensor, sample by sample."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.data import SampleHash, Samples
from modelwright.errors import InputError
from modelwright.stages.quantize._ranges import Observed, Range, fetch
from modelwright.stages.quantize._session import run_each
from modelwright.worker import progress

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

BINS = 2048
# How finely each end of a range is searched.
_STEPS = 64
_BUDGET = 256 << 20
_UNKNOWN_SIZE = 4 << 20

Histogram = tuple["NDArray[Any]", "NDArray[Any]"]


def histograms(
    model: onnx.ModelProto, observed: Observed, samples: Samples, workdir: Path, bins: int = BINS
) -> dict[str, Histogram]:
    """Counts and edges per tensor over ±(largest value seen in the first pass); none of a tensor with infinities."""
    found: dict[str, Histogram] = {}
    for chunk in _chunks(model, tuple(name for name, seen in observed.ranges.items() if seen.finite)):
        session = fetch(model, chunk, workdir)
        total = SampleHash()
        for index, (sample, values) in enumerate(run_each(session, list(chunk), samples)):
            total.add(sample)
            for name, value in zip(chunk, values, strict=True):
                _add(found, name, value, observed.ranges[name], bins)
            progress(f"histograms: sample {index + 1}")
        if total.hexdigest() != observed.digest:
            raise InputError(
                "the calibration data changed while it was read",
                cause="a second reading gave other samples than the first",
                fix="Make the reader repeatable: fixed seed, fixed order.",
            )
    return found


def percentile_range(histogram: Histogram, seen: Range, percentile: float) -> Range:
    """Cut the same share of values off both ends."""
    counts, edges = histogram
    cdf = np.cumsum(counts / counts.sum())
    cut = (100.0 - percentile) / 200.0
    low, high = edges[np.searchsorted(cdf, cut)], edges[np.searchsorted(cdf, 1.0 - cut)]
    return _inside(low, high, seen)


def mse_range(histogram: Histogram, seen: Range, bits: int) -> Range:
    """The range with the least squared error: what is cut off beyond it, and what rounding costs inside."""
    counts, edges = histogram
    centres = (edges[:-1] + edges[1:]).astype(np.float64) / 2
    shares = np.arange(_STEPS, 0, -1) / _STEPS
    lows, highs = min(float(seen.low), 0.0) * shares, max(float(seen.high), 0.0) * shares
    below = np.array([_cut_off(counts, np.maximum(low - centres, 0)) for low in lows])
    above = np.array([_cut_off(counts, np.maximum(centres - high, 0)) for high in highs])
    step = (highs[None, :] - lows[:, None]) / (2**bits - 1)
    # Zero is a level of its own: what a Relu set to zero is never rounded.
    rounded = counts.sum() - counts[counts.size // 2]
    error = below[:, None] + above[None, :] + rounded * step**2 / 12
    low, high = np.unravel_index(int(np.argmin(error)), error.shape)
    kind = edges.dtype
    return Range(np.asarray(lows[low], kind), np.asarray(highs[high], kind))


def _cut_off(counts: NDArray[Any], beyond: NDArray[Any]) -> float:
    return float(np.dot(counts, np.square(beyond)))


def _add(found: dict[str, Histogram], name: str, value: NDArray[Any], seen: Range, bins: int) -> None:
    if not value.size:
        return
    limit = seen.largest
    counts, edges = np.histogram(value.reshape(-1), bins, range=(-limit, limit))
    if name in found:
        counts += found[name][0]
    found[name] = counts, edges.astype(value.dtype)


def _inside(low: NDArray[Any], high: NDArray[Any], seen: Range) -> Range:
    return Range(np.asarray(np.maximum(low, seen.low)), np.asarray(np.minimum(high, seen.high)))


def _chunks(model: onnx.ModelProto, tensors: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Groups whose values fit the budget together; the model runs once per group and sample."""
    sizes = _sizes(model)
    group: list[str] = []
    room = _BUDGET
    for name in tensors:
        size = sizes.get(name, _UNKNOWN_SIZE)
        if group and size > room:
            yield tuple(group)
            group, room = [], _BUDGET
        group.append(name)
        room -= size
    if group:
        yield tuple(group)


def _sizes(model: onnx.ModelProto) -> dict[str, int]:
    """Bytes of values whose shape is fully known."""
    found = {}
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output):
        tensor = value.type.tensor_type
        if tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim):
            found[value.name] = 4 * math.prod(dim.dim_value for dim in tensor.shape.dim)
    return found
