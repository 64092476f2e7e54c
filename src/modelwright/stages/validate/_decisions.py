"""Answers that are decisions: the best class, the text that is read, the places where something is, the neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

# A sequence of rows is read as text where one class, the blank, has so much of it.
_BLANK, _LONGEST, _FEWEST_SYMBOLS = 0.3, 512, 10
# An answer that has so much of all places stands for nothing, and the others are what a user looks for.
_COMMON = 0.7
# Where a score counts as something; users of chances choose one of these, and what is a quarter beside it is near it.
SEEN, _CHOSEN, _NEAR = 0.25, (0.3, 0.5), 0.25


@dataclass(frozen=True)
class ChangedDecisions:
    """How many of `asked` decisions are other ones; `of` is what they are called."""

    changed: int
    asked: int
    of: str


def best_classes(wanted: NDArray[Any], got: NDArray[Any]) -> tuple[ChangedDecisions, ChangedDecisions]:
    """Of rows of scores: where the margin is above the noise, and all of them.

    A near-tie that an error no larger than usual turns says nothing about the artifact; many such errors do.
    """
    if wanted.shape[1] == 1:
        wanted, got = (np.hstack([1 - rows, rows]) for rows in (wanted, got))
    places = np.arange(len(wanted))
    first, second = wanted.argmax(axis=1), np.argpartition(wanted, -2, axis=1)[:, -2:]
    second = np.where(second[:, 0] == first, second[:, 1], second[:, 0])
    margin = wanted[places, first] - wanted[places, second]
    error = (got - wanted)[places, first] - (got - wanted)[places, second]
    turned = wanted[places, got.argmax(axis=1)] < wanted[places, first]
    clear = margin > 2.0 * np.sqrt(np.mean(error**2))
    return (
        ChangedDecisions(int((turned & clear).sum()), int(clear.sum()), "rows with a margin above the noise"),
        ChangedDecisions(int(turned.sum()), len(turned), "rows"),
    )


def rare_classes(wanted: NDArray[Any], got: NDArray[Any]) -> ChangedDecisions | None:
    """Of rows of scores where one class, the background, has nearly all: what either says is another one.

    Hundreds of rows that say nothing would hide that all the others are missed. How sure a row is is measured with the
    errors of the background, which those that are missed do not share.
    """
    if wanted.shape[1] == 1:
        wanted, got = (np.hstack([1 - rows, rows]) for rows in (wanted, got))
    first, now = wanted.argmax(axis=1), got.argmax(axis=1)
    common = most_common(first)
    if common is None:
        return None
    told = (first != common) | (now != common)
    places = np.arange(len(wanted))
    margin, error = (wanted[places, first] - wanted[places, now], (got - wanted)[~told])
    sure = margin > 2.0 * np.sqrt(2.0 * np.mean(error**2)) if error.size else margin > 0
    return ChangedDecisions(int((told & sure).sum()), int(told.sum()), "rows that tell something")


def most_common(values: NDArray[Any]) -> Any:
    """The value of nearly all of them, which stands for nothing; None where there is none, or nothing else."""
    found, counts = np.unique(values, return_counts=True)
    place = int(counts.argmax())
    return found[place] if _COMMON * values.size <= counts[place] < values.size else None


def things(wanted: NDArray[Any], got: NDArray[Any]) -> ChangedDecisions:
    """Of what is right or wrong (classes, masks, words): without what nearly all places say in both."""
    common = most_common(wanted)
    told = np.ones(wanted.shape, bool) if common is None else (wanted != common) | (got != common)
    called = "values" if common is None else f"values other than {common}"
    return ChangedDecisions(int((wanted != got).sum()), int(told.sum()), called)


def readings(wanted: Sequence[NDArray[Any]], got: Sequence[NDArray[Any]]) -> ChangedDecisions | None:
    """Of sequences of rows, one for each sample, where one class stands for nothing (CTC, taggers): symbols to edit.

    A symbol that moves by a step is read the same. What stands for nothing is the first class or the last; a letter
    that is frequent is none of them.
    """
    best = [rows.argmax(axis=1) for rows in wanted]
    (blank, count), *_ = Counter(np.concatenate(best).tolist()).most_common(1)
    if blank not in (0, wanted[0].shape[1] - 1):
        return None
    if count < _BLANK * sum(map(len, best)) or max(map(len, best)) > _LONGEST:
        return None
    texts = [_read(row, blank) for row in best]
    edits = sum(_edits(text, _read(rows.argmax(axis=1), blank)) for text, rows in zip(texts, got, strict=True))
    symbols = sum(map(len, texts))
    return ChangedDecisions(edits, symbols, "symbols") if symbols >= _FEWEST_SYMBOLS else None


def _read(best: NDArray[Any], blank: int) -> list[int]:
    kept = best[np.insert(best[1:] != best[:-1], 0, True)]
    return [int(symbol) for symbol in kept if symbol != blank]


def _edits(one: Sequence[int], other: Sequence[int]) -> int:
    before = list(range(len(other) + 1))
    for place, symbol in enumerate(one, 1):
        row = [place]
        for column, found in enumerate(other, 1):
            row.append(min(before[column] + 1, row[-1] + 1, before[column - 1] + (symbol != found)))
        before = row
    return before[-1]


def places(wanted: NDArray[Any], got: NDArray[Any]) -> ChangedDecisions:
    """Of scores between 0 and 1, the best of each place: what is seen no more, or seen where nothing was."""
    lost = (wanted >= SEEN) & (got < SEEN / 2)
    invented = (got >= SEEN) & (wanted < SEEN / 2)
    return ChangedDecisions(int(lost.sum() + invented.sum()), int((wanted >= SEEN).sum()), "places where something is")


def chances(wanted: NDArray[Any], got: NDArray[Any]) -> ChangedDecisions:
    """Of chances between 0 and 1, which are rarely likely: what is likely no more and what is now, of all that either
    finds likely. By the border that is crossed most; what was near it does not count."""
    found = [_crossed(wanted, got, at) for at in _CHOSEN]
    return max(found, key=lambda one: one.changed / max(one.asked, 1))


def _crossed(wanted: NDArray[Any], got: NDArray[Any], at: float) -> ChangedDecisions:
    likely, now = wanted >= at, got >= at
    clear = np.abs(wanted - at) > _NEAR * at
    changed, asked = int(((likely != now) & clear).sum()), int(likely.sum() + now.sum())
    return ChangedDecisions(changed, asked, f"chances above {at}")


def neighbours(wanted: NDArray[Any], got: NDArray[Any]) -> float:
    """Of embeddings of length one: how the similarities of all pairs agree, as a correlation."""
    upper = np.triu_indices(len(wanted), 1)
    one, other = ((rows @ rows.T)[upper] for rows in (wanted, got))
    return float(np.corrcoef(one, other)[0, 1]) if one.std() > 0 and other.std() > 0 else float(np.allclose(one, other))


def unit(rows: NDArray[Any]) -> NDArray[Any]:
    found: NDArray[Any] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
    return found
