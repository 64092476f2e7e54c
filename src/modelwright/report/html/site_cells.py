"""Cells of an overview as rows of tables; every number keeps the record that it is from."""

from __future__ import annotations

from collections.abc import Sequence

from modelwright.farm import CellFailure
from modelwright.overview import UNKNOWN, OverviewCell, OverviewModel, Sourced, SourcedRecord
from modelwright.report._units import human_bytes
from modelwright.report.html._kit import Cell, Column, Row, Shade
from modelwright.report.matrix import NEXT_STEPS

SHORT = 12
_PAGED = frozenset(
    ("advise", "analyze", "compare", "debug", "diagnose", "eval", "perf", "repair", "ship", "sweep", "tune", "watch")
)
_TONES: tuple[tuple[str, Shade], ...] = (
    ("published", "good"),
    ("validated", "good"),
    ("failed", "bad"),
    ("built", "fair"),
    ("not built", "soft"),
)
_MARKS = {"good": "✓", "bad": "✗", "fair": "?", "soft": "·", "": "·"}


def tone_of(state: str) -> Shade:
    return next((tone for word, tone in _TONES if state.startswith(word)), "soft")


def mark_of(state: str) -> str:
    return _MARKS[tone_of(state)]


def model_place(model: OverviewModel | str) -> str:
    return f"models/{model if isinstance(model, str) else model.key}.html"


def record_place(record: SourcedRecord) -> str | None:
    """Where its page is; None for a kind that has none."""
    return f"records/{record.line.id[:SHORT]}.html" if record.line.kind in _PAGED else None


def number_cell(value: Sourced, digits: int = 4, *, small: str = "") -> Cell:
    """Unknown is a dash with the reason behind it."""
    if value.value is None:
        return Cell("–", hint=value.reason or "")
    shown = f"{value.value:,.{digits}g}" if value.value % 1 else f"{value.value:,.0f}"
    return Cell(shown, value.value, small=small, source=f"{value.origin} {value.record}" if value.record else "")


def cell_columns() -> list[Column]:
    return [
        Column("target"),
        Column("precision"),
        Column("state"),
        Column("level"),
        Column("size", True),
        Column("worst cosine", True),
        Column("on the target", True),
        Column("of nodes", True),
        Column("p50 ms", True),
        Column("accuracy", True),
        Column("reference", True),
    ]


def cell_row(cell: OverviewCell, title: str | None = None) -> Row:
    """With its model where `title` is given."""
    size = number_cell(cell.size)
    shown = Cell(human_bytes(int(cell.size.value)), cell.size.value, source=size.source) if cell.size.value else size
    first = (Cell(title, link=f"{model_place(cell.model)}#{cell.id}"),) if title is not None else ()
    return Row(
        (
            *first,
            Cell(cell.target),
            Cell(cell.precision),
            Cell(f"{mark_of(cell.state)} {cell.state}", tone=tone_of(cell.state)),
            Cell(cell.level or "–"),
            shown,
            number_cell(cell.cosine, 6),
            number_cell(cell.placed, small="simulated" if cell.simulated and cell.placed.value is not None else ""),
            number_cell(cell.nodes),
            number_cell(cell.latency, small=_up_to(cell.latency)),
            number_cell(cell.accuracy, small=_bounds(cell.accuracy)),
            number_cell(cell.reference),
        ),
        anchor=cell.id,
        pick=f"{title or cell.model} on {cell.target} in {cell.precision}",
    )


def _up_to(value: Sourced) -> str:
    return "" if value.high is None else f"{value.about} {value.high:,.4g}"


def _bounds(value: Sourced) -> str:
    if value.low is None and value.high is None:
        return ""
    low, high = ("?" if end is None else f"{end:+.2g}" for end in (value.low, value.high))
    return f"drop {low} to {high}"


def unknowns(cell: OverviewCell) -> dict[str, str]:
    """What is not known of it, and why."""
    names = {"placement": cell.placed, "p50": cell.latency, "accuracy": cell.accuracy, "size": cell.size}
    asked = {name: value for name, value in names.items() if value.value is None and value != UNKNOWN}
    return {name: value.reason or "nobody said why" for name, value in asked.items()}


def record_columns(*, models: bool) -> list[Column]:
    found = [Column("when"), Column("kind"), Column("target")]
    found += [Column("model", long=True)] if models else []
    return [
        *found,
        Column("verdict", long=True),
        Column("number", True),
        Column("record"),
        Column("machine", long=True),
    ]


def record_row(record: SourcedRecord, up: str = "", *, models: bool) -> Row:
    line, value = record.line, record.headline
    place = record_place(record)
    about = (Cell(", ".join(line.models)),) if models else ()
    shown = Cell("–") if value is None else number_cell(value, small=value.unit)
    return Row(
        (
            Cell(line.made_at[:19].replace("T", " ")),
            Cell(line.kind),
            Cell(", ".join(line.targets)),
            *about,
            Cell(line.verdict or "–"),
            shown,
            Cell(line.id[:SHORT], link="" if place is None else f"{up}{place}"),
            Cell(record.environment),
        ),
        anchor=f"record-{line.id[:SHORT]}",
    )


def counts_words(cells: Sequence[OverviewCell]) -> str:
    tones: list[str] = [tone_of(cell.state) for cell in cells]
    said = ((tones.count(tone), word) for tone, word in (("good", "good"), ("fair", "unjudged"), ("bad", "failed")))
    return ", ".join(f"{count} {word}" for count, word in said if count) or "nothing built"


def failure_cells(failure: CellFailure) -> tuple[Cell, ...]:
    why = Cell(f"{failure.problem} ({failure.cause})")
    return Cell(failure.kind, tone="bad"), why, Cell(failure.fix, small=NEXT_STEPS[failure.kind])
