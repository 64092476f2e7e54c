"""Rounding that makes up for itself: what one weight loses, the weights that are still to be rounded take over.

A weight that is rounded on its own is off by up to half a step, whatever its neighbours do. But inputs go together, so
the error of one can be made good by others (Frantar et al., GPTQ): columns are rounded one after the other, and those
behind are moved by what the inverse of the inputs' second moments says. The scales stay, so nothing costs more when the
model runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

# Of the mean square of the inputs: few samples never show some directions, and nothing may count on those.
_DAMPING = 0.01
_BLOCK = 128


@dataclass(frozen=True)
class WeightGrid:
    """Where weights may lie: (integer - zero) · scale for integers from `low` to `high`. Shapes fit the weight's."""

    scale: NDArray[Any]
    zero: NDArray[Any]
    low: int
    high: int

    def nearest(self, weight: NDArray[Any]) -> NDArray[Any]:
        found: NDArray[Any] = np.clip(np.rint(weight / self.scale) + self.zero, self.low, self.high)
        return found

    def values(self, integers: NDArray[Any]) -> NDArray[Any]:
        found: NDArray[Any] = (integers - self.zero) * self.scale
        return found

    def turned(self, order: NDArray[Any]) -> WeightGrid:
        """With its columns in this order."""
        shape = np.broadcast_shapes(self.scale.shape, (*order.shape[:1], 1, order.shape[-1]))
        scale, zero = np.broadcast_to(self.scale, shape), np.broadcast_to(self.zero, shape)
        return WeightGrid(_columns(scale, order), _columns(zero, order), self.low, self.high)

    def column(self, index: int) -> WeightGrid:
        return WeightGrid(self.scale[..., index], self.zero[..., index], self.low, self.high)


def compensated(weight: NDArray[Any], grid: WeightGrid, moments: NDArray[Any]) -> NDArray[Any]:
    """Integers for a weight (groups, outputs, inputs) by the second moments (groups, inputs, inputs) of its inputs."""
    size = np.einsum("gii->gi", moments)
    order = np.argsort(-size, axis=1, kind="stable")
    factor = _factor(moments, size, order)
    left, grid = _columns(weight.astype(np.float64), order), grid.turned(order)
    found = np.empty_like(left)
    for start in range(0, left.shape[-1], _BLOCK):
        block = slice(start, min(start + _BLOCK, left.shape[-1]))
        errors = _round_block(left[..., block], factor[:, block, block], grid, found, start)
        left[..., block.stop :] -= errors @ factor[:, block, block.stop :]
    return _columns(found, np.argsort(order, axis=1))


def squared_error(lost: NDArray[Any], moments: NDArray[Any]) -> float:
    """What the outputs are off by, squared, when a weight (groups, outputs, inputs) has lost so much."""
    return float(np.einsum("goi,goi->", lost @ moments, lost))


def _round_block(
    left: NDArray[Any], factor: NDArray[Any], grid: WeightGrid, found: NDArray[Any], start: int
) -> NDArray[Any]:
    errors = np.empty_like(left)
    for place in range(left.shape[-1]):
        column, wanted = grid.column(start + place), left[..., place]
        found[..., start + place] = column.nearest(wanted)
        lost = wanted - column.values(found[..., start + place])
        errors[..., place] = lost / factor[:, place, place, None]
        left[..., place + 1 :] -= errors[..., place, None] * factor[:, place, None, place + 1 :]
    return errors


def _factor(moments: NDArray[Any], size: NDArray[Any], order: NDArray[Any]) -> NDArray[Any]:
    """The upper Cholesky factor of the inverse, in this order."""
    damping = _DAMPING * size.mean(axis=1) + np.finfo(np.float32).tiny
    ordered = np.take_along_axis(np.take_along_axis(moments, order[:, :, None], 1), order[:, None, :], 2)
    ordered[:, range(ordered.shape[1]), range(ordered.shape[1])] += damping[:, None]
    return np.linalg.cholesky(np.linalg.inv(ordered)).transpose(0, 2, 1)


def _columns(matrix: NDArray[Any], order: NDArray[Any]) -> NDArray[Any]:
    return np.take_along_axis(matrix, np.broadcast_to(order[:, None, :], (*matrix.shape[:2], order.shape[-1])), 2)
