"""What quantized numbers stand for, in float64: per tensor, per axis, in blocks, down to 2 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

DEFAULT_AXIS = 1
_LIMITS = {
    "int2": (-2, 1),
    "uint2": (0, 3),
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
    "int32": (-(2**31), 2**31 - 1),
}


@dataclass(frozen=True, eq=False)
class Grid:
    """The real numbers one quantized tensor can hold. `axis` counts only where there is more than one scale."""

    scale: NDArray[Any]
    zero: NDArray[Any]
    dtype: str
    axis: int = DEFAULT_AXIS
    block: int = 0

    @property
    def limits(self) -> tuple[int, int] | None:
        """The smallest and largest stored integer; None for types that are no integers."""
        return _LIMITS.get(self.dtype)

    @property
    def per_tensor(self) -> bool:
        return self.scale.size == 1

    @property
    def granularity(self) -> str:
        if self.per_tensor:
            return "tensor"
        return f"block {self.block}" if self.scale.ndim > 1 else f"axis {self.axis}"

    def spread(self, shape: tuple[int, ...]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Scale and zero point in float64, ready to be broadcast over a tensor of this shape."""
        return _spread(self.scale, shape, self), _spread(self.zero, shape, self)

    def reach(self) -> tuple[float, float] | None:
        """The lowest and highest real number; the widest where scales differ."""
        if self.limits is None:
            return None
        ends = [(limit - self.zero.astype(np.float64)) * self.scale.astype(np.float64) for limit in self.limits]
        return float(ends[0].min()), float(ends[1].max())


def make_grid(
    scale: NDArray[Any], zero: NDArray[Any] | None, dtype: str, axis: int = DEFAULT_AXIS, block: int = 0
) -> Grid:
    """A missing zero point is zero."""
    scale = np.asarray(scale)
    return Grid(scale, np.zeros(scale.shape) if zero is None else np.asarray(zero), dtype, axis, block)


EVERY = slice(None)


def dequantize(values: NDArray[Any], grid: Grid, part: slice = EVERY) -> NDArray[Any]:
    """The real numbers of some rows. Integers are widened before the zero point is taken off, so nothing wraps
    around."""
    scale, zero = (rows_of(item, part) for item in grid.spread(values.shape))
    real: NDArray[Any] = (rows_of(values, part).astype(np.float64) - zero) * scale
    return real


def rows_of(values: NDArray[Any], part: slice) -> NDArray[Any]:
    """Some of the rows, where there are several; what is one for all of them is one for some."""
    return values[part] if values.ndim and len(values) > 1 else values


def round_trip(values: NDArray[Any], grid: Grid, part: slice = EVERY) -> NDArray[Any]:
    """What a QuantizeLinear and a DequantizeLinear leave of float values: round half to even, then saturate."""
    assert grid.limits is not None
    scale, zero = (rows_of(item, part) for item in grid.spread(values.shape))
    stored = np.rint(rows_of(values, part).astype(np.float64) / scale) + zero
    real: NDArray[Any] = (np.clip(stored, *grid.limits) - zero) * scale
    return real


def unpack_nbits(packed: NDArray[Any], bits: int, count: int) -> NDArray[Any]:
    """The last axis of bytes as `count` small unsigned integers, lowest bits first."""
    per_byte = 8 // bits
    shifts = np.arange(per_byte, dtype=np.uint8) * bits
    parts = (packed[..., None] >> shifts) & ((1 << bits) - 1)
    return parts.reshape(*packed.shape[:-1], packed.shape[-1] * per_byte)[..., :count]


def _spread(part: NDArray[Any], shape: tuple[int, ...], grid: Grid) -> NDArray[Any]:
    wide = part.astype(np.float64)
    if wide.size == 1:
        return wide.reshape(())
    axis = grid.axis % len(shape)
    if wide.ndim == 1:
        return wide.reshape([-1 if place == axis else 1 for place in range(len(shape))])
    block = grid.block or -(-shape[axis] // wide.shape[axis])
    return np.repeat(wide, block, axis=axis).take(np.arange(shape[axis]), axis=axis)
