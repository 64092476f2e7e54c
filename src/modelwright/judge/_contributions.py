"""What each sample contributes to a metric of all, so that two models can be compared sample by sample. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Combine = Callable[[NDArray[Any]], float]
else:
    np = lazy("numpy")

Form = Literal["mean", "sums", "set"]
"""What a metric is computed from: the mean of the samples' numbers, their sums, or the whole set."""


def contributions(form: Form, combine: Combine, numbers: NDArray[Any]) -> tuple[float, NDArray[Any]]:
    """The metric, and each sample's part in it: its own number for a mean, else its jackknife pseudo-value."""
    if form == "mean":
        return float(numbers[:, 0].mean()), numbers[:, 0]
    count = len(numbers)
    if form == "sums":
        total = numbers.sum(axis=0)
        whole = combine(total)
        without = np.array([combine(total - numbers[index]) for index in range(count)])
    else:
        whole = combine(numbers)
        without = np.array([combine(np.delete(numbers, index, axis=0)) for index in range(count)])
    parts = count * whole - (count - 1) * without
    # Centred on the metric itself; the small bias that the jackknife would correct is the same story on both sides.
    return whole, parts - parts.mean() + whole


def heaviest(combine: Combine, spoiled: Callable[[NDArray[Any]], NDArray[Any]], numbers: NDArray[Any]) -> float:
    """The most by which one contribution to a metric of sums can change: samples weigh differently, so it is what the
    metric would lose if one of them, the heaviest that was seen, were `spoiled`, times their number."""
    total = numbers.sum(axis=0)
    whole = combine(total)
    costs = [abs(whole - combine(total - row + spoiled(row))) for row in numbers]
    return len(numbers) * max(costs)
