"""Sums of large tensors without large temporaries: over blocks that fit the CPU's cache.

Inside a block the numbers are summed in their own type, float32 at least, and blocks in float64: that is within
0.00001 dB of `compare`. What single floats cannot square (masks, infinities, NaN, the very small) goes there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.metrics._compare import Moments, TensorScores, compare, scores

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
        for one, other in zip(blocks(reference), blocks(candidate), strict=True):
            total = total + block_moments(one, other, product)
    return scores(total) if is_sound(total) else compare(reference, candidate)


def compare_parts(parts: Iterable[tuple[NDArray[Any], NDArray[Any]]]) -> TensorScores:
    """`blocked_compare` of a tensor that is never there as a whole."""
    total, hidden = Moments(), 0
    for one, other in parts:
        found = blocked_compare(one, other)
        if found.moments is None:
            return found
        total, hidden = total + found.moments, hidden + found.masked
    return scores(total, hidden)


def blocks(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """A tensor in pieces of float32 or wider."""
    flat = values.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        yield block if block.dtype.itemsize >= 4 else block.astype("f4")


def block_moments(one: NDArray[Any], other: NDArray[Any], product: Callable[..., Any]) -> Moments:
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


def is_sound(total: Moments) -> bool:
    """Nothing overflowed, nothing vanished."""
    finite = bool(np.isfinite(total.signal + total.noise + total.other + total.peak))
    vanished = (0 < total.peak < _SMALL) or (0 < total.max_abs < _SMALL * max(1.0, total.peak))
    return finite and total.peak < _LARGE and not vanished
