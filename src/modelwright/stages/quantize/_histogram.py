"""Ranges that leave outliers out: a second pass fills one histogram per tensor, sample by sample."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.data import SampleHash, Samples
from modelwright.errors import InputError
from modelwright.stages.quantize._ranges import Observed, Range, fetch, run
from modelwright.worker import progress

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

BINS = 2048
# Entropy looks for the range that suits an 8-bit tensor: 128 levels on each side of the comparison.
LEVELS = 128
_EPSILON = 1e-4
_BUDGET = 256 << 20
_UNKNOWN_SIZE = 4 << 20

Histogram = tuple["NDArray[Any]", "NDArray[Any]"]


def histograms(
    model: onnx.ModelProto, observed: Observed, samples: Samples, workdir: Path, bins: int = BINS
) -> dict[str, Histogram]:
    """Counts and edges per tensor over ±(largest value seen in the first pass)."""
    found: dict[str, Histogram] = {}
    for chunk in _chunks(model, tuple(observed.ranges)):
        session = fetch(model, chunk, workdir)
        total = SampleHash()
        for index, sample in enumerate(samples):
            total.add(sample)
            values = run(session, list(chunk), sample)
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


def entropy_range(histogram: Histogram, seen: Range, levels: int = LEVELS) -> Range:
    """The symmetric cut whose quantized distribution is closest (Kullback-Leibler) to the real one."""
    counts, edges = histogram
    middle, half = counts.size // 2, levels // 2
    best, chosen = math.inf, (edges[0], edges[-1])
    for reach in range(half, middle + 1):
        start, end = middle - reach, min(middle + reach + 1, counts.size)
        divergence = _divergence(counts, start, end, levels)
        if divergence < best:
            best, chosen = divergence, (edges[start], edges[end])
    return _inside(*chosen, seen)


def _divergence(counts: NDArray[Any], start: int, end: int, levels: int) -> float:
    inside = counts[start:end]
    reference = inside.copy()
    reference[0] += counts[:start].sum()
    reference[-1] += counts[end:].sum()
    merged = inside.size // levels
    body = levels * merged
    sums = inside[:body].reshape(levels, merged).sum(axis=1)
    sums[-1] += inside[body:].sum()
    filled = (reference[:body] != 0).reshape(levels, merged).sum(axis=1)
    means = np.where(filled > 0, sums / np.maximum(filled, 1), 0).astype(np.int64)
    candidate = np.zeros(inside.size, dtype=np.int64)
    candidate[:body] = np.repeat(means, merged)
    p, q = _smooth(reference), _smooth(candidate)
    if p is None or q is None:
        return math.inf
    p, q = p / p.sum(), q / q.sum()
    return float(np.sum(p * np.log(p / q)))


def _smooth(counts: NDArray[Any]) -> NDArray[Any] | None:
    """Give empty bins a little of the others, so that the logarithm is defined."""
    empty = counts == 0
    holes = int(empty.sum())
    full = counts.size - holes
    if not full or _EPSILON * holes / full >= 1:
        return None
    smoothed = counts.astype(np.float32)
    smoothed += np.where(empty, _EPSILON, -_EPSILON * holes / full).astype(np.float32)
    return smoothed


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
