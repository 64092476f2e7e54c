"""The pages of the site that are about everything: models by targets, support, findings, history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from modelwright.overview import Overview, OverviewCell, OverviewModel
from modelwright.report.html import page_of
from modelwright.report.html._kit import Cell, Column, Html, Row, Shade, table
from modelwright.report.html._page import NextStep, Page, Section, asset_files
from modelwright.report.html.site_cells import (
    SHORT,
    cell_columns,
    cell_row,
    counts_words,
    failure_cells,
    mark_of,
    model_place,
    record_columns,
    record_place,
    record_row,
    tone_of,
)
from modelwright.report.html.site_model import model_page

__all__ = ["INDEX", "record_page", "record_place", "site_pages"]

INDEX = "index.html"
_PAGES = (("Models", INDEX), ("Support", "support.html"), ("Findings", "findings.html"), ("History", "history.html"))
_STATUS: dict[str, Shade] = {"confirmed": "good", "general": "good", "retracted": "bad", "expired": "fair"}


def site_pages(known: Overview) -> dict[str, str]:
    """Every page by its place, and what they share. Pages of records are those of their kind."""
    whole = {INDEX: index_page(known), "support.html": support_page(known)}
    whole |= {"findings.html": findings_page(known), "history.html": history_page(known)}
    found = {place: page.html("assets") for place, page in whole.items()}
    for model in known.models:
        page = model_page(model, known, _links("", up="../"))
        found[model_place(model)] = page.html("../assets")
    return {**found, **{f"assets/{name}": content for name, content in asset_files().items()}}


def record_page(payload: object) -> str:
    """The page of its kind, among the others."""
    return replace(page_of(payload), links=_links("", up="../")).html("../assets")


def _links(current: str, up: str = "") -> tuple[tuple[str, str], ...]:
    return tuple((words, "" if place == current else f"{up}{place}") for words, place in _PAGES)


def index_page(known: Overview) -> Page:
    facts = (
        ("models", str(len(known.models))),
        ("targets", str(len(known.targets))),
        ("cells", f"{len(known.cells)}: {counts_words(known.cells)}"),
        ("records", f"{len(known.records)}" + (f", {known.left} more were not read" if known.left else "")),
    )
    sections = [_grid(known), _every(known), _failures(known), _orders(known)]
    return Page(
        kind="modelwright",
        title="Models and targets",
        facts=facts,
        sections=tuple(section for section in sections if section is not None),
        next_steps=() if known.models else (NextStep("Nothing is known yet.", "wright build model.onnx -o out"),),
        footer=f"Gathered {known.made_at}. Every number names its record; site.json beside this page has all of it.",
        links=_links(INDEX),
    )


def _grid(known: Overview) -> Section | None:
    if not known.models:
        return None
    columns = [Column("model", long=True), *(Column(target) for target in known.targets)]
    rows = [Row((_titled(model), *(_square(model, target) for target in known.targets))) for model in known.models]
    body = table(columns, rows, find="filter by model or state")
    hint = "✓ passed its gate · ? built, nobody could judge it · ✗ failed · what stands below was measured"
    return Section("Models by targets", Html(f'<div class="grid pinned">{body}</div>'), hint)


def _titled(model: OverviewModel) -> Cell:
    return Cell(model.title, link=model_place(model), small=" · ".join(filter(None, (model.task, model.licence))))


def _square(model: OverviewModel, target: str) -> Cell:
    cells = [cell for cell in model.cells if cell.target == target]
    if not cells:
        return Cell("")
    order = ("good", "fair", "bad", "soft")
    best = min(cells, key=lambda cell: order.index(tone_of(cell.state)))
    said = f"{mark_of(best.state)} {best.failure.kind if best.failure else best.precision}"
    others = [f"{mark_of(cell.state)} {cell.precision}" for cell in cells if cell is not best]
    small = " · ".join([*_measured(best), *others[:2], *([f"and {len(others) - 2} more"] if others[2:] else [])])
    return Cell(said, tone=tone_of(best.state), link=f"{model_place(model)}#{best.id}", small=small)


def _measured(cell: OverviewCell) -> Iterator[str]:
    if cell.latency.value is not None:
        yield f"{cell.latency.value:,.4g} ms"
    if cell.accuracy.value is not None:
        yield f"{cell.accuracy.value:.4g}"


def _every(known: Overview) -> Section | None:
    rows = [cell_row(cell, model.title) for model in known.models for cell in model.cells]
    if not rows:
        return None
    body = table(
        [Column("model", long=True), *cell_columns()], rows, find="filter by model, target, precision or state"
    )
    return Section(
        "Every cell", Html(f'<div class="pinned">{body}</div>'), "tick two rows to put them beside each other"
    )


def _failures(known: Overview) -> Section | None:
    columns = [Column("model", long=True), Column("target"), Column("class"), Column("why", long=True)]
    columns.append(Column("next", long=True))
    rows = [
        Row((Cell(model.title, link=f"{model_place(model)}#{cell.id}"), Cell(cell.target), *failure_cells(failure)))
        for model in known.models
        for cell in model.cells
        if (failure := cell.failure) is not None
    ]
    return Section("Failures", table(columns, rows, find="filter by model or class")) if rows else None


def _orders(known: Overview) -> Section | None:
    columns = [Column("asked"), Column("models", True), Column("targets", long=True), Column("cells now", long=True)]
    columns.append(Column("feed"))
    rows = [
        Row(
            (
                Cell(order.at[:19].replace("T", " ")),
                Cell(str(order.models), order.models),
                Cell(", ".join(order.targets)),
                Cell(", ".join(f"{count} {word}" for word, count in order.counts)),
                Cell(order.feed or "–"),
            ),
            lit=order.last and len(known.orders) > 1,
        )
        for order in known.orders
    ]
    return Section("Matrix runs", table(columns, rows), "the last one first") if rows else None


def support_page(known: Overview) -> Page:
    columns = [Column("entry"), Column("family"), Column("task"), Column("target"), Column("precision")]
    columns += [Column("level"), Column("shown on"), Column("licence"), Column("known to be bad", long=True)]
    rows = [
        Row(
            (
                Cell(row.entry),
                Cell(row.family or "–"),
                Cell(row.task or "–"),
                Cell(row.target),
                Cell(row.precision or "–"),
                Cell(row.level or "not shown", tone="good" if row.level else "soft"),
                Cell(row.shown_on or "–"),
                Cell(row.licence),
                Cell(row.known_bad or "–", tone="bad" if row.known_bad else "soft"),
            ),
            anchor=f"{row.entry}--{row.target}".replace(":", "-"),
        )
        for row in known.support
    ]
    shown = sum(row.level is not None for row in known.support)
    body = table(columns, rows, find="filter by entry, family, task or target")
    return Page(
        kind="modelwright",
        title="What is supported",
        facts=(("entries", str(len({row.entry for row in known.support}))), ("rows with a level", str(shown))),
        sections=(Section("The catalogue", body, "a level is what the evidence of an entry shows on a target"),),
        links=_links("support.html"),
    )


def findings_page(known: Overview) -> Page:
    columns = [Column("finding"), Column("status"), Column("says", long=True), Column("target"), Column("change")]
    columns += [Column("agree", True), Column("disagree", True), Column("evidence")]
    rows = [
        Row(
            (
                Cell(one.finding.id, small=one.finding.kind),
                Cell(str(one.status), tone=_STATUS.get(str(one.status), "soft")),
                Cell(one.finding.says, small=one.why),
                Cell(one.finding.target or "any"),
                Cell(one.finding.change or "–"),
                Cell(str(len(one.agreeing)), len(one.agreeing)),
                Cell(str(len(one.contradicting)), len(one.contradicting)),
                Cell(" ".join(name[:SHORT] for name in one.finding.evidence[:3]) or "–"),
            ),
            anchor=f"finding-{one.finding.id}",
        )
        for one in known.findings
    ]
    body = table(columns, rows, find="filter by word, target or change")
    return Page(
        kind="modelwright",
        title="What is known",
        facts=(("findings", str(len(rows))),),
        sections=(Section("Findings", body, "each with the observations that agree with it and those that do not"),),
        next_steps=(NextStep("What one rests on.", "wright kb show FINDING"),),
        links=_links("findings.html"),
    )


def history_page(known: Overview) -> Page:
    rows = [record_row(record, models=True) for record in known.records]
    body = table(record_columns(models=True), rows, find="filter by kind, model, target or verdict")
    searches = [record for record in known.records if record.line.kind in ("tune", "sweep")]
    sections = [Section("Every record", body, "the newest first; a number of one time is no verdict about another")]
    if searches:
        again = [
            replace(record_row(one, models=True), anchor="") for one in searches
        ]  # its anchor is in the whole list
        found = table(record_columns(models=True), again)
        sections.insert(0, Section("Searches", found))
    return Page(
        kind="modelwright",
        title="History",
        facts=(("records", str(len(known.records))), ("searches", str(len(searches)))),
        sections=tuple(sections),
        next_steps=(NextStep("One again, with every sample.", "wright show RECORD"),),
        links=_links("history.html"),
    )
