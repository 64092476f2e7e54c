"""Scores of a tensor over many samples, without keeping any of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright.metrics._compare import (
    IDENTICAL,
    METRICS,
    Moments,
    TensorScores,
    compare,
    compare_all,
    scores,
    unscored,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

# For these a larger number is worse.
_SMALLER_IS_BETTER = frozenset({"max_abs", "relative_l2"})


@dataclass(frozen=True)
class Summary:
    """One metric over the samples. A sample without a number is in none of them, and `reason` says so."""

    mean: float | None
    worst: float | None
    pooled: float | None
    reason: str | None


@dataclass(frozen=True)
class Aggregate:
    """`failed` counts samples that could not be scored (NaN, other shape): they never vanish from a mean unseen."""

    samples: int
    failed: int
    identical: int
    sqnr_db: Summary
    psnr_db: Summary
    cosine: Summary
    max_abs: Summary
    relative_l2: Summary
    top1: Summary
    problem: str | None


class Accumulator:
    """Feed it pairs; ask for the aggregate at any time."""

    def __init__(self) -> None:
        self._samples = 0
        self._failed = 0
        self._identical = 0
        self._moments = Moments()
        self._sums = dict.fromkeys(METRICS, 0.0)
        self._counts = dict.fromkeys(METRICS, 0)
        self._worst: dict[str, float] = {}
        self._reasons: dict[str, str] = {}
        self._problem: str | None = None

    def add(self, reference: NDArray[Any], candidate: NDArray[Any]) -> TensorScores:
        return self._add(compare(reference, candidate))

    def add_all(self, pairs: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> None:
        """As `add` of each (reference, candidate)."""
        for found in compare_all(pairs):
            self._add(found)

    def _add(self, found: TensorScores) -> TensorScores:
        self._samples += 1
        self._identical += found.identical
        if found.problem is not None:
            self._failed += 1
            self._problem = self._problem or found.problem
            return found
        assert found.moments is not None
        self._moments = self._moments + found.moments
        for name in METRICS:
            self._note(name, found)
        return found

    def _note(self, name: str, found: TensorScores) -> None:
        score = getattr(found, name)
        if score.value is None:
            self._reasons[name] = score.reason
            return
        self._sums[name] += score.value
        self._counts[name] += 1
        pick = max if name in _SMALLER_IS_BETTER else min
        self._worst[name] = pick(self._worst.get(name, score.value), score.value)

    def aggregate(self) -> Aggregate:
        pooled = scores(self._moments) if self._samples > self._failed else unscored(self._problem or "no samples")
        return Aggregate(
            samples=self._samples,
            failed=self._failed,
            identical=self._identical,
            **{name: self._summary(name, pooled) for name in METRICS},
            problem=self._problem,
        )

    def _summary(self, name: str, pooled: TensorScores) -> Summary:
        count = self._counts[name]
        whole = getattr(pooled, name)
        complete = count == self._samples > 0
        reason = None if complete else self._reasons.get(name) or self._problem or whole.reason
        if self._failed and reason == IDENTICAL:
            reason = self._problem
        mean = self._sums[name] / count if count else None
        return Summary(mean=mean, worst=self._worst.get(name), pooled=whole.value, reason=reason)
