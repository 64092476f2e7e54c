"""The page of many searches: one line each, and what to take for several targets."""

from __future__ import annotations

from modelwright.report.html._kit import Cell, Column, Row, table
from modelwright.report.html._page import Page, Section
from modelwright.report.sweep import effect_of, row_words, step_words, summary_words
from modelwright.search import Portfolio, TuneSweep


def sweep_page(result: TuneSweep) -> Page:
    columns = [Column("model", long=True), Column("target"), Column("champion", long=True), Column("says")]
    rows = [
        Row((Cell(row.name), Cell(row.target), Cell(row.result.champion if row.result else "–"), Cell(row_words(row))))
        for row in result.rows
    ]
    sections = [Section("Searches", table(columns, rows), "each judged by itself; records hold their numbers")]
    for portfolio in result.portfolios:
        sections += _portfolio(portfolio)
    names = dict.fromkeys(row.name for row in result.rows)
    return Page(
        kind="searches",
        title=", ".join(names),
        verdict=(summary_words(result), ""),
        facts=(("models", str(len(names))),),
        notes=(),
        sections=tuple(sections),
        next_steps=(),
    )


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
