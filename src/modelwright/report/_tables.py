"""Tables that survive a narrow terminal: numbers stay whole, names are folded, what matters least is left out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright._text import visible

if TYPE_CHECKING:
    import rich.box
    import rich.cells
    import rich.console
    import rich.table
    import rich.text
else:
    rich = lazy("rich")

_GAP, _READABLE, _SHORTEST = 3, 32, 6
_FLEXIBLE = ("name", "text")


@dataclass(frozen=True)
class Col:
    """A `name` is folded after a slash or a blank, a `text` between words; a `word` and a `number` stay on one line.

    Where there is no room the column with the highest `drop` goes first; one with 0 never goes.
    """

    title: str
    kind: Literal["name", "text", "word", "number"] = "word"
    drop: int = 0


if TYPE_CHECKING:
    Content = str | rich.text.Text


@dataclass(frozen=True, eq=False)
class FittedTable:
    """Laid out when it is printed: only then it is known in whose words, and how long those are."""

    columns: Sequence[Col]
    rows: Sequence[Sequence[Content]]
    width: int
    title: str | None

    def __rich_console__(
        self, console: rich.console.Console, options: rich.console.ConsoleOptions
    ) -> Iterator[rich.table.Table]:
        said = getattr(console, "said", _as_it_is)
        yield _table(self.columns, [[said(cell) for cell in row] for row in self.rows], self.width, self.title)


def fitted(
    columns: Sequence[Col], rows: Sequence[Sequence[Content]], width: int, title: str | None = None
) -> FittedTable:
    """The table in at most `width` columns, as long as a name can be read in it."""
    return FittedTable(columns, rows, width, title)


def _as_it_is(shown: Content) -> Content:
    return shown


def _table(
    columns: Sequence[Col], rows: Sequence[Sequence[Content]], width: int, title: str | None
) -> rich.table.Table:
    rows = [[visible(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    kept, room = _kept(columns, rows, width)
    table = rich.table.Table(
        box=rich.box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left", title_style="dim"
    )
    for place in kept:
        column = columns[place]
        justify: Literal["left", "right"] = "right" if column.kind == "number" else "left"
        stiff = place not in room
        most = _narrowest(column, rows, place) if stiff else room[place]
        table.add_column(_head(column.title, most), justify=justify, no_wrap=stiff, overflow="fold", max_width=most)
    for row in rows:
        table.add_row(*(_cell(columns[place], row[place], room.get(place)) for place in kept))
    return table


def _kept(columns: Sequence[Col], rows: Sequence[Sequence[Content]], width: int) -> tuple[list[int], dict[int, int]]:
    """The columns that are shown, and how wide each name and text may be."""
    kept = list(range(len(columns)))
    for dropped in (*sorted((place for place in kept if columns[place].drop), key=lambda at: -columns[at].drop), None):
        folded = {place: _widest(columns[place], rows, place) for place in kept if columns[place].kind in _FLEXIBLE}
        stiff = sum(_narrowest(columns[place], rows, place) for place in kept if place not in folded)
        least = {place: min(folded[place], _unbroken(rows, place)) for place in folded}
        room = _shared(folded, least, width - stiff - _GAP * len(kept))
        if dropped is None or all(room[place] >= min(_READABLE, folded[place]) for place in folded):
            break
        kept.remove(dropped)
    return kept, room


def _shared(wanted: dict[int, int], least: dict[int, int], width: int) -> dict[int, int]:
    """Who wants little gets it, the others share what is left; no word is cut while there is room for all."""
    if sum(least.values()) > width:
        least = dict.fromkeys(least, 0)
    found: dict[int, int] = {}
    ranked = sorted(wanted.items(), key=lambda item: item[1])
    for number, (place, most) in enumerate(ranked):
        left = width - sum(found.values())
        kept_back = sum(least[other] for other, _ in ranked[number + 1 :])
        share = min(most, left // (len(ranked) - number), left - kept_back)
        found[place] = max(_SHORTEST, least[place], share)
    return found


def _unbroken(rows: Sequence[Sequence[Content]], place: int) -> int:
    """Its longest word; what is longer than anybody reads is cut."""
    words = (word for row in rows for word in str(row[place]).replace("/", "/ ").split())
    return min(_READABLE, max(map(_length, words), default=0))


def _narrowest(column: Col, rows: Sequence[Sequence[Content]], place: int) -> int:
    """A heading may be broken between words."""
    words = max((len(word) for word in column.title.split()), default=0)
    return max([words, *(_length(row[place]) for row in rows)])


def _widest(column: Col, rows: Sequence[Sequence[Content]], place: int) -> int:
    return max([len(column.title), *(_length(row[place]) for row in rows)])


def _length(content: Content) -> int:
    return int(rich.cells.cell_len(str(content)))


def _head(title: str, width: int) -> rich.console.RenderableType:
    lines = textwrap.wrap(title, width, break_long_words=False)
    return rich.console.Group(*map(rich.text.Text, lines)) if len(lines) > 1 else rich.text.Text(title)


def _cell(column: Col, content: Content, room: int | None) -> rich.console.RenderableType:
    text = content if isinstance(content, rich.text.Text) else rich.text.Text(content)
    if column.kind != "name" or room is None or len(text.plain) <= room:
        return text
    return rich.console.Group(*(rich.text.Text(line, style=text.style) for line in _folded(text.plain, room)))


def _folded(name: str, room: int) -> Iterator[str]:
    """Broken behind a slash or a blank where that is possible."""
    line = ""
    for piece in name.replace("/", "/\0").replace(" ", " \0").split("\0"):
        if line and len(line) + len(piece.rstrip()) > room:
            yield line.rstrip()
            line = ""
        line += piece
        while len(line.rstrip()) > room:
            yield line[:room]
            line = line[room:]
    if line:
        yield line.rstrip()
