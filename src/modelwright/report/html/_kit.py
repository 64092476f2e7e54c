"""What pages are made of: tables, bars, intervals, curves, a timeline, a graph. Whatever text comes in is escaped here.

The tables are written out; sorting, filtering and drawing is what `page.js` adds to them in a browser.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, NewType
from urllib.parse import quote

from modelwright._dataclass import dataclass
from modelwright._json import plain
from modelwright._text import visible, visible_json, visible_lines

Html = NewType("Html", str)
Shade = Literal["", "good", "fair", "bad", "soft"]
COLOURS = 10
# More would be slow to open and nobody reads them; the JSON has all.
_MOST_ROWS = 3000
# What is no longer than this stays on one line in a column of long words, and makes it no wider.
_BRIEF = 24


_spoken: ContextVar[Callable[[str], str] | None] = ContextVar("spoken", default=None)


@contextmanager
def speaking(spoken: Callable[[str], str] | None) -> Iterator[None]:
    """Every text that is put on a page meanwhile goes through it."""
    before = _spoken.set(spoken)
    try:
        yield
    finally:
        _spoken.reset(before)


def text(words: str) -> Html:
    spoken = _spoken.get()
    return Html(html.escape(visible(words if spoken is None else spoken(words))))


def join(parts: Iterable[Html]) -> Html:
    return Html("".join(parts))


def paragraph(words: str, kind: str = "") -> Html:
    return Html(f'<p class="{kind}">{text(words)}</p>')


def colour(place: int) -> str:
    """The name of the colour of the n-th of a series; the last one is for all that come behind."""
    return f"c{min(place, COLOURS - 1)}"


@dataclass(frozen=True)
class Column:
    """Text stays on one line; in a `long` column it is broken where it must be, after a slash where it can be."""

    title: str
    number: bool = False
    long: bool = False


@dataclass(frozen=True)
class Cell:
    """`order` is what a number is sorted by, None for unknown; text is sorted as it is written. `link` is the name of
    another page beside this one, with `#` and a row in it. `source` is the record that a number is from;
    `hint` is shown to whoever points at it, and read out."""

    text: str
    order: float | None = None
    tone: Shade = ""
    small: str = ""
    link: str = ""
    source: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Row:
    """`block` is the box of the graph it belongs to; a `lit` row stands out. One with an `anchor` can be linked to, and
    one with a `pick` be put beside another: it is what it is called there."""

    cells: tuple[Cell, ...]
    block: int | None = None
    lit: bool = False
    anchor: str = ""
    pick: str = ""


def number(value: float | None, digits: int = 1, *, unknown: str = "–", tone: Shade = "") -> Cell:
    return Cell(unknown if value is None else f"{value:,.{digits}f}", value, tone)


def table(
    columns: Sequence[Column], rows: Sequence[Row], *, by: int | None = None, down: bool = True, find: str = ""
) -> Html:
    """`by` is the column it is sorted by already; `find` adds a box to filter with and says what it looks at."""
    head = join(_heading(column, (down if place == by else None)) for place, column in enumerate(columns))
    body = join(_row(row, columns) for row in rows[:_MOST_ROWS])
    left = len(rows) - _MOST_ROWS
    more = paragraph(f"and {left:,} more; the JSON document has all", "more") if left > 0 else Html("")
    kind = "rows findable" if find else "rows"
    kind += " pickable" if any(row.pick for row in rows) else ""
    whole = f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    beside = '<div class="beside" role="status"></div>' if "pickable" in kind else ""
    return Html(f'{_finder(find)}{beside}<div class="scroll" tabindex="0">{whole}</div>{more}')


def _finder(find: str) -> str:
    if not find:
        return ""
    return (
        f'<div class="tools"><input type="search" placeholder="{text(find)}" aria-label="{text(find)}">'
        '<span class="found"></span><button type="button" class="all" hidden>show all</button></div>'
    )


def _heading(column: Column, down: bool | None) -> Html:
    sort = "" if down is None else f' aria-sort="{"descending" if down else "ascending"}"'
    kind = ' class="n"' if column.number else ""
    return Html(f'<th scope="col"{kind}{sort}><button type="button">{text(column.title)}</button></th>')


def _row(row: Row, columns: Sequence[Column]) -> Html:
    block = "" if row.block is None else f' data-block="{row.block}"'
    lit = ' class="lit"' if row.lit else ""
    here = f' id="{text(row.anchor)}"' if row.anchor else ""
    first, *rest = zip(row.cells, columns, strict=True)
    cells = _cell(*first, before=_pick(row), after=_anchor(row)) + "".join(_cell(*pair) for pair in rest)
    return Html(f"<tr{block}{lit}{here}>{cells}</tr>")


def _pick(row: Row) -> str:
    if not row.pick:
        return ""
    return f'<input type="checkbox" class="pick" value="{text(row.pick)}" aria-label="compare {text(row.pick)}"> '


def _anchor(row: Row) -> str:
    if not row.anchor:
        return ""
    return f' <a class="anchor" href="#{html.escape(quote(row.anchor))}" aria-label="link to this row">#</a>'


def _cell(cell: Cell, column: Column, *, before: str = "", after: str = "") -> str:
    width = ("long" if len(cell.text) > _BRIEF else "long brief") if column.long else ""
    kind = " ".join(filter(None, ("n" if column.number else "", width, cell.tone)))
    order = f' data-v="{"" if cell.order is None else repr(float(cell.order))}"' if column.number else ""
    small = f"<small>{text(cell.small)}</small>" if cell.small else ""
    classes = f' class="{kind}"' if kind else ""
    words: str = text(cell.text).replace("/", "/<wbr>") if column.long else text(cell.text)
    if cell.link:
        words = f'<a href="{html.escape(quote(cell.link, safe="/#"))}">{words}</a>'
    source = f' data-source="{text(cell.source)}"' if cell.source else ""
    hint = cell.hint or (f"from {cell.source}" if cell.source else "")
    title = f' title="{text(hint)}"' if hint else ""
    read = f'<span class="read">: {text(cell.hint)}</span>' if cell.hint else ""
    return f"<td{classes}{order}{source}{title}>{before}{words}{read}{after}{small}</td>"


def listing(words: str) -> Html:
    """Lines as they are, for a file."""
    return Html(f'<pre tabindex="0"><code>{html.escape(visible_lines(words))}</code></pre>')


@dataclass(frozen=True)
class Bar:
    """`share` of what the longest bar has; `low` and `high` are where it may really end."""

    name: str
    share: float
    value: str
    small: str = ""
    detail: str = ""
    low: float | None = None
    high: float | None = None
    tone: str = "c0"


def bars(rows: Sequence[Bar]) -> Html:
    most = max((max(row.share, row.high or 0.0) for row in rows), default=0.0) or 1.0
    return join(_bar(row, most) for row in rows)


def _bar(row: Bar, most: float) -> Html:
    whisker = ""
    if row.low is not None and row.high is not None:
        whisker = f'<u style="left:{_percent(row.low, most)};width:{_percent(row.high - row.low, most)}"></u>'
    small = f" <small>{text(row.small)}</small>" if row.small else ""
    return Html(
        f'<div class="bar" title="{text(row.name)}"><div class="name">{text(row.name)}{small}</div><div class="track">'
        f'<i style="width:{_percent(row.share, most)};background:var(--{row.tone})"></i>{whisker}</div>'
        f'<div class="value"><b>{text(row.value)}</b>{text(row.detail)}</div></div>'
    )


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%"


@dataclass(frozen=True)
class Interval:
    """Where a number lies: between `low` and `high`, most likely at `middle`."""

    name: str
    value: str
    low: float | None = None
    middle: float | None = None
    high: float | None = None
    tone: Shade = ""


def intervals(rows: Sequence[Interval], *, band: tuple[float, float] | None = None, limit: float | None = None) -> Html:
    """All on one axis with 0 on it; `band` is what does not matter, `limit` what may not be passed."""
    ends = [0.0, *(band or ()), *([limit] if limit is not None else [])]
    ends += [end for row in rows for end in (row.low, row.middle, row.high) if end is not None]
    low, high = min(ends), max(ends)
    pad = (high - low) * 0.06 or 1.0
    axis = _Axis(low - pad, high + pad)
    marks = f'<em style="left:{axis.at(band[0])};width:{axis.wide(*band)}"></em>' if band else ""
    marks += f'<s style="left:{axis.at(0.0)}"></s>'
    marks += f'<s class="limit" style="left:{axis.at(limit)}"></s>' if limit is not None else ""
    return join(_interval(row, axis, marks) for row in rows)


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float

    def at(self, value: float) -> str:
        return _percent(value - self.low, self.high - self.low)

    def wide(self, low: float, high: float) -> str:
        return _percent(high - low, self.high - self.low)


def _interval(row: Interval, axis: _Axis, marks: str) -> Html:
    line = dot = ""
    if row.low is not None and row.high is not None:
        line = f'<u style="left:{axis.at(row.low)};width:{axis.wide(row.low, row.high)}"></u>'
    if row.middle is not None:
        dot = f'<b style="left:{axis.at(row.middle)}"></b>'
    return Html(
        f'<div class="bar interval" title="{text(row.name)}"><div class="name">{text(row.name)}</div>'
        f'<div class="track {row.tone}">{marks}{line}{dot}</div><div class="value">{text(row.value)}</div></div>'
    )


@dataclass(frozen=True)
class Series:
    """A line, or with `points` dots of `size`; `tone` is a colour of the style sheet."""

    name: str
    values: tuple[float | None, ...]
    tone: str = "c0"
    points: bool = False
    hollow: bool = False
    size: int = 4


@dataclass(frozen=True)
class Band:
    """A coloured part of the height; None is the end of the chart."""

    low: float | None
    high: float | None
    tone: Literal["good", "fair", "bad"]


@dataclass(frozen=True)
class Chart:
    """Curves over `x`. `names` say what stands at each x; `low` and `high` are in the picture in any case."""

    x: tuple[float, ...]
    x_title: str
    series: tuple[Series, ...]
    unit: str = ""
    names: tuple[str, ...] = ()
    bands: tuple[Band, ...] = ()
    low: float | None = None
    high: float | None = None
    height: int = 260


def chart(shown: Chart) -> Html:
    says = '<div class="says"></div>' if shown.names else ""
    return Html(f'<figure class="chart"><div class="plot"></div>{says}{_data(plain(shown))}</figure>')


@dataclass(frozen=True)
class LegendKey:
    name: str
    tone: str


def keys(items: Iterable[LegendKey]) -> Html:
    found = "".join(f'<li><b style="background:var(--{item.tone})"></b>{text(item.name)}</li>' for item in items)
    return Html(f'<ul class="keys">{found}</ul>')


@dataclass(frozen=True)
class Box:
    """One box of a graph. `left`: something in it is not where it was meant to run."""

    title: str
    sub: str
    hint: str
    tone: str
    left: bool = False


def graph(boxes: Sequence[Box], arrows: Sequence[tuple[int, int]]) -> Html:
    """Laid out in the browser. A click on a box shows its rows in the table of the same section."""
    drawing = '<svg width="0" height="0" role="img" aria-label="the graph"></svg>'
    return Html(
        f'<figure class="graph" tabindex="0">{drawing}{_data({"nodes": plain(boxes), "edges": arrows})}</figure>'
    )


@dataclass(frozen=True)
class Span:
    """One box of a timeline, in whatever unit `end` has."""

    name: str
    hint: str
    start: float
    length: float
    depth: int
    tone: str


def timeline(spans: Sequence[Span], ticks: Sequence[tuple[float, str]]) -> Html:
    """`ticks` are (place, words)."""
    end = max((span.start + span.length for span in spans), default=0.0) or 1.0
    height = 25 * (max((span.depth for span in spans), default=0) + 1) + 28
    boxes = "".join(_span(span, end) for span in spans)
    marks = "".join(f'<span style="left:{_percent(at, end)}">{text(words)}</span>' for at, words in ticks)
    return Html(
        '<div class="tools"><label>zoom <input type="range" min="0" max="6" step="0.5" value="0"></label>'
        f'<span class="says"></span></div><div class="lane" tabindex="0"><div style="height:{height}px">'
        f'{boxes}<div class="axis">{marks}</div></div></div>'
    )


def _span(span: Span, end: float) -> str:
    shown = text(span.name) if span.length > 0.04 * end else ""
    style = f"left:{_percent(span.start, end)};width:{_percent(span.length, end)};top:{25 * span.depth + 4}px"
    return f'<i title="{text(span.hint)}" style="{style};background:var(--{span.tone})">{shown}</i>'


def _data(document: object) -> str:
    """JSON that no name in a model can break out of."""
    found = visible_json(json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":")))
    safe = found.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return f'<script type="application/json">{safe}</script>'
