"""The page of a contribution: its rows, its baseline, its records. The same records as in its Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from modelwright.report.html._kit import Cell, Column, Html, Row, Shade, join, paragraph, table
from modelwright.report.html._page import NextStep, Page, Section
from modelwright.report.html._words import command
from modelwright.support import LEVELS, LadderRow, SupportReport

_ID = 12
_SHADES: dict[str, Shade] = {"pass": "good", "fail": "bad", "inconclusive": "fair", "blocked": "fair"}


def contribution_page(report: SupportReport) -> Page:
    claim = report.claim
    sections = [
        Section("Ladder", _ladder(report.rows), "every row rests on records, judged again from what was measured"),
        Section("Baseline and difference", _gate(report)),
        Section("Files", _files(report)),
        Section("Records", _records(report), "every attempt, also those that failed"),
        Section("Friction", _lines(report.friction) if report.friction else paragraph("None was detected.")),
        Section("What may be touched", _lines(report.allowed), f"effort {claim.effort}"),
    ]
    return Page(
        kind="contribution",
        title=report.name,
        verdict=(f"{report.state}: {report.reached or 'no level'} of {claim.ceiling}", _SHADES.get(report.state, "")),
        facts=(
            ("source", claim.source.name),
            ("for", ", ".join(map(str, claim.cases))),
            ("effort", claim.effort),
            ("outcome", claim.outcome),
            ("claim", report.claim_digest[:_ID]),
        ),
        sections=tuple(sections),
        next_steps=(NextStep("Believe nothing of it.", command("support", "review", report.name)),),
        footer="; ".join(report.tools),
    )


def _ladder(rows: Sequence[LadderRow]) -> Html:
    columns = [Column("level"), Column("case"), Column("word"), Column("why", long=True)]
    cells = [
        Row(
            (
                Cell(f"{row.level} {LEVELS[row.level].title}"),
                Cell(f"{row.target} {row.precision}", small=row.component or ""),
                Cell(row.word, tone=_SHADES.get(row.word, "")),
                Cell("; ".join(row.reasons), small=" ".join(one[:_ID] for one in row.statements)),
            )
        )
        for row in rows
    ]
    return table(columns, cells)


def _gate(report: SupportReport) -> Html:
    if report.gate is None:
        return paragraph("The gate was not asked.")
    gate = report.gate
    columns = [Column("arm"), Column("builds"), Column("graphs"), Column("failure", long=True)]
    rows = [
        Row((Cell(one.name), Cell(f"{one.works} of {one.runs}"), Cell(str(one.graphs)), Cell(one.failure or "–")))
        for one in gate.arms
    ]
    said = [paragraph(f"{gate.word}: {'; '.join(gate.reasons)}"), table(columns, rows)]
    if report.gain:
        said.append(paragraph(f"Gain: {report.gain}"))
    if report.base:
        said += [paragraph("Without the contribution:"), _ladder(report.base)]
    return join(said)


def _files(report: SupportReport) -> Html:
    columns = [Column("case"), Column("file", long=True), Column("sha256")]
    rows = [
        Row((Cell(f"{one.target} {one.precision}"), Cell(one.name), Cell(one.sha256[:_ID]))) for one in report.files
    ]
    return table(columns, rows)


def _records(report: SupportReport) -> Html:
    columns = [Column("asked", long=True), Column("word"), Column("exit"), Column("s")]
    rows = [
        Row(
            (
                Cell(one.asked + (f", {one.change}" if one.change else ""), small=one.statement[:_ID]),
                Cell(one.word),
                Cell(str(one.exit)),
                Cell(f"{one.seconds:.1f}", one.seconds),
            )
        )
        for one in report.attempts
    ]
    return table(columns, rows)


def _lines(lines: Sequence[str]) -> Html:
    return join(paragraph(line) for line in lines)
