"""The page of many searches: one line each, and what to take for several targets."""

from __future__ import annotations

from modelwright.report.html._kit import Cell, Column, Row, table
from modelwright.report.html._page import NextStep, Page, Section
from modelwright.report.html._words import command
from modelwright.report.sweep import effect_of, row_words, step_words, summary_words
from modelwright.search import Portfolio, SweepRow, TuneSweep

_ID, _FEW = 12, 3


def sweep_page(result: TuneSweep) -> Page:
    columns = [Column("model", long=True), Column("target"), Column("champion", long=True)]
    hint = "each judged by itself; records hold their numbers"
    sections = [Section("Searches", table(columns, [_row(row) for row in result.rows]), hint)]
    for portfolio in result.portfolios:
        sections += _portfolio(portfolio)
    models = list(dict.fromkeys(row.name for row in result.rows))
    more = f" and {len(models) - _FEW} more" if len(models) > _FEW else ""
    return Page(
        kind="searches",
        title=f"{', '.join(models[:_FEW])}{more}",
        verdict=(summary_words(result), ""),
        facts=(("models", str(len(models))),),
        notes=(),
        sections=tuple(sections),
        next_steps=_steps(result),
    )


def _row(row: SweepRow) -> Row:
    """What it says stands below its champion, so that a narrow window shows it too."""
    kept = f"record {row.record[:_ID]}" if row.record is not None else ""
    champion = row.result.champion if row.result is not None else "–"
    return Row((Cell(row.name, small=kept), Cell(row.target), Cell(champion, small=_says(row))))


def _steps(result: TuneSweep) -> tuple[NextStep, ...]:
    kept = next((row.record for row in result.rows if row.record is not None), None)
    return () if kept is None else (NextStep("Look at one search.", command("show", kept[:_ID])),)


def _says(row: SweepRow) -> str:
    return f"{row_words(row)}. Next: {row.failure.fix}" if row.failure is not None else row_words(row)


def _portfolio(portfolio: Portfolio) -> list[Section]:
    columns = [Column("recipe", long=True), *(Column(name) for name in portfolio.targets), Column("out")]
    rows = [
        Row(
            (
                Cell(f"{row.label}{' (front)' if row.front else ''}"),
                *(Cell(effect_of(row, place), effect) for place, effect in enumerate(row.effects)),
                Cell(row.why or ""),
            )
        )
        for row in portfolio.rows
    ]
    carried = [
        Row((Cell(one.target), Cell(one.champion), Cell(one.word), Cell(one.reason))) for one in portfolio.artifacts
    ]
    steps = [
        Row((Cell(", ".join(one.missing) or "–"), Cell(one.target), Cell(step_words(one)), Cell(one.reason)))
        for one in portfolio.chain
    ]
    found = [Section(f"{portfolio.model}: one recipe for all", table(columns, rows), portfolio.reason)] if rows else []
    words = [Column("champion of"), Column("champion"), Column("can go"), Column("why")]
    found.append(Section(f"{portfolio.model}: where each champion can go", table(words, carried), portfolio.reason))
    words = [Column("without"), Column("next"), Column("then"), Column("why")]
    hint = "the artifact of the first target, really opened on the next"
    return [*found, Section(f"{portfolio.model}: when an EP is missing", table(words, steps), hint)]
