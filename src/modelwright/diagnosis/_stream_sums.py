"""What a quantizer does to a tensor, and scores gathered over the samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.diagnosis._dequant import Grid
from modelwright.metrics import IDENTICAL, Moments, TensorScores, block_moments, blocks, compare, is_sound, scores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")


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
        for one in blocks(values):
            step = one.dtype.type(scale)
            stored = (one / step).round()
            inside = stored.clip(low, high)
            beyond = stored != inside
            inside *= step
            total = total + block_moments(one, inside, product)
            if beyond.any():
                clipped += int(beyond.sum())
                clip_noise += float(((inside - one)[beyond].astype("f8") ** 2).sum())
    return LocalNoise(scores(total), clipped, clip_noise) if is_sound(total) else _local_whole(values, grid)


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


class NoiseTally:
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
