"""What a source holds, row by row and as it is: nothing is made of it yet. Read in a child."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data._npz import Header
from modelwright.errors import InputError
from modelwright.vocabulary import Data

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")

Row = Mapping[str, Any]
LABEL, LABELS = "label", ("label", "labels")
# The one array of a file that names none.
UNNAMED = ""


@dataclass(frozen=True, eq=False)
class Rows:
    """`read` gives the rows with these numbers, in order, or all of them; reading again gives the same ones.

    `count` is None where nobody knows before the end. `shared` arrays belong to all rows. `headers` say what the
    arrays of a row are where that is known without unpacking one.
    """

    kind: str
    count: int | None
    read: Callable[[Sequence[int] | None], Iterable[Row]]
    label_names: tuple[str, ...] = ()
    shared: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, Header] = field(default_factory=dict)

    def chosen(self, data: Data, most: int | None = None, after: int = 0) -> Iterator[tuple[int, Row]]:
        """At most so many rows, each with its number: drawn by the seed, or the first where the end is unknown.

        `after` so many that went elsewhere come the others; what went elsewhere fills up what is missing.
        """
        there, enough = list(self.others(data, after, most)) if after else [], most or data.samples
        if after and (enough is None or len(there) < enough):
            left = None if enough is None else enough - len(there)
            return iter(sorted([*there, *self._first(data, _least(after, left))], key=lambda item: item[0]))
        return iter(there) if after else self._first(data, most)

    def others(self, data: Data, after: int, most: int | None = None) -> Iterator[tuple[int, Row]]:
        """At most so many of the rows that are not among the first `after` that are chosen."""
        if self.count is None:
            end = _least(data.samples, None if most is None else after + most)
            return itertools.islice(enumerate(self.read(None)), after, end)
        drawn = _order(self.count, data.seed)[: data.samples][after:][:most]
        return zip(sorted(drawn), self.read(sorted(drawn)), strict=True)

    def fresh(self, data: Data, most: int, after: int) -> int:
        """How many of the rows that are chosen so did not go elsewhere."""
        if self.count is None:
            return sum(1 for _ in self.others(data, after, most))
        return max(0, min(most, min(self.count, data.samples or self.count) - after))

    def _first(self, data: Data, most: int | None) -> Iterator[tuple[int, Row]]:
        wanted = _least(data.samples, most)
        if self.count is None:
            return itertools.islice(enumerate(self.read(None)), wanted)
        numbers = selected(self.count, wanted, data.seed)
        return zip(numbers, self.read(numbers if len(numbers) < self.count else None), strict=True)


def _least(*numbers: int | None) -> int | None:
    return min((number for number in numbers if number is not None), default=None)


def by_number(kind: str, count: int, row: Callable[[int], Row], names: Sequence[str] = ()) -> Rows:
    """Of a source where each row can be had alone."""
    return Rows(kind, count, lambda numbers: map(row, range(count) if numbers is None else numbers), tuple(names))


def selected(count: int, samples: int | None, seed: int) -> list[int]:
    """All rows, or this many of them drawn without replacement; the same for the same seed."""
    return list(range(count)) if samples is None or samples >= count else sorted(_order(count, seed)[:samples])


def _order(count: int, seed: int) -> list[int]:
    return [int(index) for index in np.random.default_rng([seed, count]).permutation(count)]


def renamed(rows: Rows, columns: Mapping[str, str]) -> Rows:
    """Every row also has its fields under the names that were asked for."""
    if not columns:
        return rows

    def rename(found: Row) -> Row:
        absent = [column for column in columns.values() if column not in found]
        if absent:
            raise InputError(
                f"the data has no column '{absent[0]}'",
                cause=f"its columns are {', '.join(sorted(found))}",
                fix="Name one of them in `columns`.",
            )
        return {**found, **{name: found[column] for name, column in columns.items()}}

    heads = {name: rows.headers[column] for name, column in columns.items() if column in rows.headers}
    return replace(
        rows, read=lambda numbers: map(rename, rows.read(numbers)), headers={**rows.headers, **heads} if heads else {}
    )


def labelled(rows: Rows, labels: Sequence[Any]) -> Rows:
    """Every row with its label; there must be one for each."""
    if rows.count is not None and rows.count != len(labels):
        raise InputError(
            f"there are {len(labels)} labels for {rows.count} samples",
            cause="`labels` has one for each, in their order",
            fix="Write as many labels as there are samples.",
        )

    def read(numbers: Sequence[int] | None) -> Iterator[Row]:
        own = labels if numbers is None else [labels[number] for number in numbers]
        return ({**row, LABEL: label} for row, label in zip(rows.read(numbers), own, strict=False))

    return replace(rows, read=read)
