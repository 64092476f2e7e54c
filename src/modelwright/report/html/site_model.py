"""The page of one model on the site: its artifacts, what was measured of them, and how to make them again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from modelwright.overview import Overview, OverviewModel, SourcedRecord
from modelwright.report.html._kit import (
    Cell,
    Chart,
    Column,
    Html,
    Interval,
    Row,
    Series,
    chart,
    colour,
    intervals,
    join,
    listing,
    paragraph,
    table,
    text,
)
from modelwright.report.html._page import NextStep, Page, Section
from modelwright.report.html._words import command
from modelwright.report.html.site_cells import (
    cell_columns,
    cell_row,
    counts_words,
    failure_cells,
    record_columns,
    record_row,
    unknowns,
)

_MOST_RECIPES = 6


def model_page(model: OverviewModel, known: Overview, links: tuple[tuple[str, str], ...]) -> Page:
    mine = [record for record in known.records if model.key in record.about]
    sections = (
        _targets(model),
        _accuracy(model),
        _failures(model),
        _times(mine),
        _records(mine),
        _unknown(model),
        _again(model),
    )
    return Page(
        kind="model",
        title=model.title,
        facts=tuple(_facts(model)),
        sections=tuple(section for section in sections if section is not None),
        next_steps=_steps(model),
        footer=f"Gathered {known.made_at}.",
        links=links,
    )


def _facts(model: OverviewModel) -> Iterator[tuple[str, str]]:
    yield "cells", f"{len(model.cells)}: {counts_words(model.cells)}"
    for name, value in (("task", model.task), ("licence", model.licence), ("catalogue", model.entry)):
        if value is not None:
            yield name, value
    if model.identity is not None:
        yield "content", model.identity


def _targets(model: OverviewModel) -> Section:
    rows = [cell_row(cell) for cell in model.cells]
    hint = "the cosine is that of the gate, against the model as it came; tick two rows to put them beside each other"
    body = Html(f'<div class="pinned">{table(cell_columns(), rows)}</div>')
    return Section("Artifacts", body, hint)


def _accuracy(model: OverviewModel) -> Section | None:
    """How much was lost, where an evaluation bounds it."""
    rows = [
        Interval(f"{cell.target} {cell.precision}", f"drop between {low:+.4g} and {high:+.4g}", low, seen, high)
        for cell in model.cells
        if (low := cell.accuracy.low) is not None and (high := cell.accuracy.high) is not None
        for seen in [None if cell.reference.value is None else cell.reference.value - (cell.accuracy.value or 0.0)]
    ]
    return Section("How much was lost", intervals(rows), "bounds of the drop against the reference") if rows else None


def _unknown(model: OverviewModel) -> Section | None:
    """Each reason once, with the targets that it holds for."""
    why: dict[tuple[str, str], list[str]] = {}
    for cell in model.cells:
        for what, reason in unknowns(cell).items():
            why.setdefault((what, reason), []).append(cell.target)
    rows = [Row((Cell(what), Cell(reason), Cell(", ".join(targets)))) for (what, reason), targets in why.items()]
    columns = [Column("what"), Column("why", long=True), Column("on", long=True)]
    return Section("What is not known, and why", table(columns, rows)) if rows else None


def _failures(model: OverviewModel) -> Section | None:
    columns = [Column("target"), Column("class"), Column("why", long=True), Column("next", long=True)]
    rows = [Row((Cell(cell.target), *failure_cells(cell.failure))) for cell in model.cells if cell.failure is not None]
    return Section("Failures", table(columns, rows)) if rows else None


def _times(mine: list[SourcedRecord]) -> Section | None:
    """The p50 of every perf, by target and in order of time."""
    found = [
        one for one in reversed(mine) if one.line.kind == "perf" and one.headline and one.headline.value is not None
    ]
    if len(found) < 2:
        return None
    targets = list(dict.fromkeys(one.line.targets[0] for one in found))
    series = tuple(
        Series(target, tuple(_at(one, target) for one in found), colour(place), points=True, size=7)
        for place, target in enumerate(targets)
    )
    names = tuple(f"{one.line.made_at[:19]} · {one.environment} · record {one.line.id[:12]}" for one in found)
    drawn = chart(Chart(tuple(float(at) for at in range(len(found))), "measurement", series, "ms", names, low=0.0))
    words = "Different times are different states of a machine: `wright compare` proves what is faster, this does not."
    return Section("p50 over time", join((drawn, paragraph(words, "more"))))


def _at(record: SourcedRecord, target: str) -> float | None:
    return record.headline.value if record.headline is not None and record.line.targets[0] == target else None


def _records(mine: list[SourcedRecord]) -> Section | None:
    if not mine:
        return None
    body = table(record_columns(models=False), [record_row(one, "../", models=False) for one in mine])
    return Section("Records", body, "traces, repairs, searches and everything else that was found, the newest first")


def _again(model: OverviewModel) -> Section | None:
    """What each cell was made by."""
    parts: list[Html] = []
    for cell in [cell for cell in model.cells if cell.recipe or cell.command][:_MOST_RECIPES]:
        when = "" if cell.made_at is None else f", {datetime.fromisoformat(cell.made_at):%Y-%m-%d %H:%M}"
        recipe = "" if cell.recipe is None else listing(cell.recipe)
        called = "" if cell.command is None else listing(cell.command)
        title = text(f"{cell.target} in {cell.precision}{when}")
        parts.append(Html(f"<details><summary>{title}</summary>{called}{recipe}</details>"))
    more = len([cell for cell in model.cells if cell.recipe or cell.command]) - _MOST_RECIPES
    if more > 0:
        parts.append(paragraph(f"and {more} more; site.json has all", "more"))
    return Section("How it was made", join(parts), "the call and the resolved recipe") if parts else None


def _steps(model: OverviewModel) -> tuple[NextStep, ...]:
    failed = [cell for cell in model.cells if cell.failure is not None]
    if failed:
        words = command("matrix", "explain", model.title, failed[0].target)
        return (NextStep(f"Everything about the failure on {failed[0].target}.", words),)
    return (NextStep("Everything that is on record about it.", command("show", "--list", "--model", model.title)),)
