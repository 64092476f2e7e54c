"""How far one tensor is from its reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

METRICS = ("sqnr_db", "psnr_db", "cosine", "max_abs", "relative_l2", "top1")
IDENTICAL = "identical"
# Masks are huge negative numbers, the lowest of a type for the most part (bfloat16: -3.39e38). What both sides write as
# one need not be the same to the last digit; numbers of that size that differ by more were computed.
_MASK, _LOWEST, _SAME_MASK = 1e30, 3.38e38, 0.01
EMPTY = "the tensor is empty"
# Integers up to this are exact as float64.
_EXACT = 2.0**53
# How numpy keeps texts: as objects, or as characters of a fixed width.
_TEXTS = "OU"
# Tensors of so many values are worth more than the call that compares them.
_SMALL = 4096


@dataclass(frozen=True)
class Score:
    """A number, or why there is none. `identical` is the one reason that is good news."""

    value: float | None
    reason: str | None = None


@dataclass(frozen=True)
class Moments:
    """Sums that add up over samples, so that pooled scores need no second look at the data."""

    count: int = 0
    signal: float = 0.0
    other: float = 0.0
    dot: float = 0.0
    noise: float = 0.0
    peak: float = 0.0
    max_abs: float = 0.0
    top1_hits: int = 0
    top1_rows: int = 0

    def __add__(self, more: Moments) -> Moments:
        return Moments(
            count=self.count + more.count,
            signal=self.signal + more.signal,
            other=self.other + more.other,
            dot=self.dot + more.dot,
            noise=self.noise + more.noise,
            peak=max(self.peak, more.peak),
            max_abs=max(self.max_abs, more.max_abs),
            top1_hits=self.top1_hits + more.top1_hits,
            top1_rows=self.top1_rows + more.top1_rows,
        )


@dataclass(frozen=True)
class TensorScores:
    """All metrics of one pair. `problem` is set when the pair could not be compared, or holds NaN or infinity."""

    sqnr_db: Score
    psnr_db: Score
    cosine: Score
    max_abs: Score
    relative_l2: Score
    top1: Score
    masked: int
    problem: str | None
    moments: Moments | None = field(default=None, repr=False)

    @property
    def identical(self) -> bool:
        return self.sqnr_db.reason == IDENTICAL


def compare(reference: NDArray[Any], candidate: NDArray[Any]) -> TensorScores:
    """Score `candidate` against `reference`; positions masked in both (lowest float, same infinity, NaN) do not
    count."""
    reference, candidate = np.asarray(reference), np.asarray(candidate)
    if reference.dtype.kind in _TEXTS and candidate.dtype.kind in _TEXTS and reference.shape == candidate.shape:
        return _same_texts(reference.ravel().astype(str), candidate.ravel().astype(str))
    problem = _mismatch(reference, candidate)
    if not problem and not reference.size:
        return scores(Moments())
    return unscored(problem) if problem else _compared(reference[np.newaxis], candidate[np.newaxis])[0]


def _same_texts(reference: NDArray[Any], candidate: NDArray[Any]) -> TensorScores:
    """Between two texts there is no distance: they are the same, or there is no score."""
    other = np.flatnonzero(reference != candidate)
    if other.size:
        return unscored(f"texts differ: {str(reference[other[0]])!r} and {str(candidate[other[0]])!r}")
    count = reference.size
    return scores(Moments(count=count, signal=count, other=count, dot=count))


def compare_all(pairs: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> list[TensorScores]:
    """`compare` of each (reference, candidate): small ones of one shape and type all at once."""
    kinds = {tuple((each.shape, each.dtype) for each in pair) for pair in pairs}
    if len(kinds) > 1 or not 0 < pairs[0][0].size <= _SMALL or _mismatch(*pairs[0]):
        return [compare(*pair) for pair in pairs]
    references, candidates = zip(*pairs, strict=True)
    return _compared(np.stack(references), np.stack(candidates))


def _compared(references: NDArray[Any], candidates: NDArray[Any]) -> list[TensorScores]:
    """Of each pair along the first axis."""
    # 128-bit products of 32-bit values cannot overflow float64, so masks are cut for meaning, not for safety.
    wanted, got = references.astype(np.float64), candidates.astype(np.float64)
    hidden = masked(wanted, got)
    wanted, got = np.where(hidden, 0.0, wanted), np.where(hidden, 0.0, got)
    bad = [_count_in_each(~np.isfinite(side)) for side in (wanted, got)]
    for side in (wanted, got):
        side[np.add(*bad) > 0] = 0.0
    error = _differences(references, candidates, got - wanted)
    unseen = _count_in_each(hidden).tolist()
    faults = zip(*bad, strict=True)
    problems = [_not_finite(ours, "reference") or _not_finite(theirs, "candidate") for ours, theirs in faults]
    return [
        unscored(problem, count) if problem else scores(moments, count)
        for problem, count, moments in zip(problems, unseen, _moments(wanted, got, error, unseen), strict=True)
    ]


def _differences(references: NDArray[Any], candidates: NDArray[Any], found: NDArray[Any]) -> NDArray[Any]:
    """As `found` with float64; of long integers (ids, hashes, times) as they are, whose last digits float64 has not."""
    if references.dtype != candidates.dtype or references.dtype.kind not in "iu" or references.dtype.itemsize < 8:
        return found
    exact = (candidates - references).view(np.int64).astype(np.float64)
    return np.where(np.abs(found) < _EXACT, exact, found)


def _count_in_each(found: NDArray[Any]) -> NDArray[Any]:
    counts: NDArray[Any] = found.reshape(len(found), -1).sum(axis=1)
    return counts


def scores(moments: Moments, masked: int = 0) -> TensorScores:
    """The metrics that follow from the sums."""
    count = moments.count
    return TensorScores(
        sqnr_db=_decibels(moments.signal, moments.noise, "the reference is all zeros"),
        psnr_db=_decibels(moments.peak**2 * count, moments.noise, "the reference is all zeros"),
        cosine=_cosine(moments) if count or masked else Score(None, EMPTY),
        max_abs=Score(moments.max_abs) if count else Score(None, "every value is masked" if masked else EMPTY),
        relative_l2=_ratio(moments.noise, moments.signal),
        top1=Score(moments.top1_hits / moments.top1_rows) if moments.top1_rows else Score(None, "no rows of scores"),
        masked=masked,
        problem=None,
        moments=moments,
    )


def unscored(problem: str, masked: int = 0) -> TensorScores:
    nothing = Score(None, problem)
    return TensorScores(nothing, nothing, nothing, nothing, nothing, nothing, masked, problem)


def _mismatch(reference: NDArray[Any], candidate: NDArray[Any]) -> str | None:
    if reference.shape != candidate.shape:
        return f"shapes differ: {list(reference.shape)} and {list(candidate.shape)}"
    strange = [array.dtype for array in (reference, candidate) if array.dtype.kind not in "fiub"]
    return f"{strange[0]} is not a number type" if strange else None


def masked(reference: NDArray[Any], candidate: NDArray[Any]) -> NDArray[Any]:
    """Where both say the same nothing: the lowest number of a type, an infinity, NaN."""
    sizes = [np.abs(reference), np.abs(candidate)]
    both = (sizes[0] >= _MASK) & (sizes[1] >= _MASK) & (np.sign(reference) == np.sign(candidate))
    neither: NDArray[Any] = np.isnan(reference) & np.isnan(candidate)
    if not both.any():
        return neither
    smaller, larger = np.minimum(*sizes), np.maximum(*sizes)
    equal = (smaller >= _LOWEST) | (np.isfinite(larger) & (smaller >= (1 - _SAME_MASK) * larger))
    # A half float has infinity where others have any mask.
    overflown = (reference < 0) & (larger >= _LOWEST)
    same: NDArray[Any] = neither | (both & (equal | overflown))
    return same


def _not_finite(bad: int, who: str) -> str | None:
    return f"the {who} has {bad} NaN or infinite values" if bad else None


def is_of_reference(problem: str) -> bool:
    """Whether there was nothing to compare with: what was compared may be right."""
    return problem.startswith("the reference has ")


def _moments(
    references: NDArray[Any], candidates: NDArray[Any], differences: NDArray[Any], masked: Sequence[int]
) -> Iterator[Moments]:
    flat, other, error = (side.reshape(len(side), -1) for side in (references, candidates, differences))
    peaks, worst = (np.abs(side).max(axis=1).tolist() for side in (flat, error))
    hits, rows = _top1(references, candidates)
    for index, hidden in enumerate(masked):
        one, two, wrong = flat[index], other[index], error[index]
        yield Moments(
            count=one.size - hidden,
            signal=float(one @ one),
            other=float(two @ two),
            dot=float(one @ two),
            noise=float(wrong @ wrong),
            peak=peaks[index],
            max_abs=worst[index],
            top1_hits=hits[index],
            top1_rows=rows,
        )


def _top1(references: NDArray[Any], candidates: NDArray[Any]) -> tuple[list[int], int]:
    """Rows whose best class is a best class of the reference; ties in the reference are all right answers."""
    count = len(references)
    if references.ndim == 1 or references.shape[-1] < 2:
        return [0] * count, 0
    rows = references.reshape(-1, references.shape[-1])
    chosen = candidates.reshape(rows.shape).argmax(axis=1)
    hits = rows[np.arange(len(rows)), chosen] >= rows.max(axis=1)
    return hits.reshape(count, -1).sum(axis=1).tolist(), len(rows) // count


def _decibels(signal: float, noise: float, no_signal: str) -> Score:
    if noise == 0.0:
        return Score(None, IDENTICAL)
    return Score(10.0 * float(np.log10(signal / noise))) if signal > 0.0 else Score(None, no_signal)


def _cosine(moments: Moments) -> Score:
    if moments.noise == 0.0:
        return Score(1.0)
    norm = float(np.sqrt(moments.signal) * np.sqrt(moments.other))
    return Score(max(-1.0, min(1.0, moments.dot / norm))) if norm > 0.0 else Score(None, "one side is all zeros")


def _ratio(noise: float, signal: float) -> Score:
    if noise == 0.0:
        return Score(0.0)
    return Score(float(np.sqrt(noise / signal))) if signal > 0.0 else Score(None, "the reference is all zeros")
