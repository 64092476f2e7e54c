"""Where a series changed its level: by ranks, with a permutation test, so that no noise has to be assumed.

Under no change the values are exchangeable, so a series that never changed gets a change point with probability
`alpha` at most. What is found splits the series, and each part is asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

_SIDE = 4
FEWEST_TO_CHANGE = 2 * _SIDE
"""A level needs so many values on both sides together."""
_PERMUTATIONS = 1999


@dataclass(frozen=True)
class ChangePoint:
    """The value at `place` is the first of a new level. `before` and `after` are the medians of both sides."""

    place: int
    before: float
    after: float
    p: float


def change_points(values: Sequence[float], alpha: float = 0.05) -> tuple[ChangePoint, ...]:
    """In the order of the series; none where it is shorter than `FEWEST_TO_CHANGE`."""
    found = list(_split(np.asarray(values, dtype=float), 0, alpha))
    places = [0, *(place for place, _ in found), len(values)]
    return tuple(
        ChangePoint(
            place,
            float(np.median(values[places[number] : place])),
            float(np.median(values[place : places[number + 2]])),
            p,
        )
        for number, (place, p) in enumerate(found)
    )


def _split(values: NDArray[Any], start: int, alpha: float) -> list[tuple[int, float]]:
    if len(values) < FEWEST_TO_CHANGE:
        return []
    ranks = _ranks(values)
    if not ranks.std():
        return []
    place, seen = _best(ranks[None, :])
    draw = np.random.default_rng(0)
    shuffled = draw.permuted(np.tile(ranks, (_PERMUTATIONS, 1)), axis=1)
    p = (1 + int((_best(shuffled)[1] >= seen[0] - 1e-12).sum())) / (1 + _PERMUTATIONS)
    if p > alpha:
        return []
    cut = int(place[0])
    before, after = _split(values[:cut], start, alpha), _split(values[cut:], start + cut, alpha)
    return [*before, (start + cut, p), *after]


def _best(ranks: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """For each row where the sides differ most, and by how much, in standard deviations of the mean rank."""
    count = ranks.shape[1]
    cuts = np.arange(_SIDE, count - _SIDE + 1)
    sums = np.cumsum(ranks - ranks.mean(axis=1, keepdims=True), axis=1)[:, cuts - 1]
    scores = np.abs(sums) / np.sqrt(cuts * (count - cuts))
    best = scores.argmax(axis=1)
    return cuts[best], scores[np.arange(len(ranks)), best]


def _ranks(values: NDArray[Any]) -> NDArray[Any]:
    """Equal values share the mean of their ranks."""
    below = (values[:, None] > values[None, :]).sum(axis=1)
    equal = (values[:, None] == values[None, :]).sum(axis=1)
    ranked: NDArray[Any] = below + (equal + 1) / 2
    return ranked
