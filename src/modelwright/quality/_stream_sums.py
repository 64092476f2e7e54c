"""Scores of large tensors without large temporaries: sums over blocks that fit the CPU's cache.

Inside a block the numbers are summed in their own type, float32 at least, and blocks in float64: that is within
0.00001 dB of `modelwright.metrics.compare`. What single floats cannot square (masks, infinities, NaN, the very small)
goes there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.metrics import TensorScores, compare
from modelwright.metrics._compare import IDENTICAL, Moments, scores
from modelwright.quality._dequant import Grid

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

_BLOCK = 1 << 15
# Squares of numbers beyond these leave the range of float32.
_LARGE, _SMALL = 1e18, 1e-15


def blocked_compare(reference: NDArray[Any], candidate: NDArray[Any]) -> TensorScores:
    """`compare` in one pass; top-1 is left out, it belongs to outputs."""
    kinds = {reference.dtype.kind, candidate.dtype.kind}
    if reference.shape != candidate.shape or reference.size == 0 or kinds != {"f"}:
        return compare(reference, candidate)
    total, product = Moments(), np.einsum
    # Overflow and NaN are expected here; they are noticed below.
    with np.errstate(all="ignore"):
        for one, other in zip(_blocks(reference), _blocks(candidate), strict=True):
            total = total + _moments(one, other, product)
    return scores(total) if _sound(total) else compare(reference, candidate)


@dataclass(frozen=True)
class LocalNoise:
    """What one Q/DQ pair does to a float tensor. `clipped` values lie beyond its range."""

    scores: TensorScores
    clipped: int = 0
    clip_noise: float = 0.0


def local_noise(values: NDArray[Any], grid: Grid) -> LocalNoise:
    """A float tensor through a pair with these scales, against itself."""
    assert grid.limits is not None
    # Single floats hold 24 bits: enough for the grid of a 16-bit tensor, not for that of a 32-bit one.
    if values.size == 0 or not grid.per_tensor or grid.dtype == "int32" or values.dtype.kind != "f":
        return _local_whole(values, grid)
    scale, zero = float(grid.scale.reshape(())), float(grid.zero.reshape(()))
    low, high = (limit - zero for limit in grid.limits)
    total, clipped, clip_noise, product = Moments(), 0, 0.0, np.einsum
    with np.errstate(all="ignore"):
        for one in _blocks(values):
            step = one.dtype.type(scale)
            stored = (one / step).round()
            inside = stored.clip(low, high)
            beyond = stored != inside
            inside *= step
            total = total + _moments(one, inside, product)
            if beyond.any():
                clipped += int(beyond.sum())
                clip_noise += float(((inside - one)[beyond].astype("f8") ** 2).sum())
    return LocalNoise(scores(total), clipped, clip_noise) if _sound(total) else _local_whole(values, grid)


def _local_whole(values: NDArray[Any], grid: Grid) -> LocalNoise:
    assert grid.limits is not None
    scale, zero = grid.spread(values.shape)
    with np.errstate(all="ignore"):
        stored = np.rint(values.astype(np.float64) / scale) + zero
        inside = np.clip(stored, *grid.limits)
        after = (inside - zero) * scale
    beyond = stored != inside
    noise = float(((after - values)[beyond] ** 2).sum())
    return LocalNoise(compare(values, after), int(beyond.sum()), noise)


class Tally:
    """One kind of score of one tensor over the samples. A sample that cannot be scored is counted, never skipped."""

    def __init__(self) -> None:
        self.samples = 0
        self.failed = 0
        self.problem: str | None = None
        self.moments = Moments()
        self._sum = 0.0
        self._scored = 0
        self._worst: float | None = None

    def add(self, found: TensorScores) -> None:
        self.samples += 1
        if found.moments is None:
            self.failed += 1
            self.problem = self.problem or found.problem
            return
        self.moments = self.moments + found.moments
        number = found.sqnr_db.value
        if number is not None:
            self._sum += number
            self._scored += 1
            self._worst = number if self._worst is None else min(self._worst, number)

    @property
    def pooled(self) -> TensorScores | None:
        return scores(self.moments) if self.samples > self.failed else None

    @property
    def sqnr_db(self) -> float | None:
        """Over all samples together; nothing when one of them failed."""
        return self.pooled.sqnr_db.value if self.pooled is not None and not self.failed else None

    @property
    def mean_db(self) -> float | None:
        return self._sum / self._scored if self._scored else None

    @property
    def worst_db(self) -> float | None:
        return self._worst

    @property
    def reason(self) -> str | None:
        if self.problem is not None:
            return self.problem
        return "no samples" if self.pooled is None else self.pooled.sqnr_db.reason

    @property
    def noise_to_signal(self) -> float | None:
        """The ratio of powers; 0 when identical, None when it has no meaning."""
        if self.failed or self.pooled is None:
            return None
        if self.reason == IDENTICAL:
            return 0.0
        return self.moments.noise / self.moments.signal if self.moments.signal > 0 else None


def _blocks(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    flat = values.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        yield block if block.dtype.itemsize >= 4 else block.astype("f4")


def _moments(one: NDArray[Any], other: NDArray[Any], product: Callable[..., Any]) -> Moments:
    """`product` is numpy's einsum, looked up once: not the BLAS, whose threads cost more than they bring here."""
    error = other - one
    signal, power, noise = (float(product("i,i->", part, part)) for part in (one, other, error))
    return Moments(
        count=one.size,
        signal=signal,
        other=power,
        dot=(signal + power - noise) / 2,
        noise=noise,
        peak=float(max(one.max(), -one.min())),
        max_abs=float(max(error.max(), -error.min())),
    )


def _sound(total: Moments) -> bool:
    """Nothing overflowed, nothing vanished."""
    finite = bool(np.isfinite(total.signal + total.noise + total.other + total.peak))
    vanished = (0 < total.peak < _SMALL) or (0 < total.max_abs < _SMALL * max(1.0, total.peak))
    return finite and total.peak < _LARGE and not vanished
