"""What `wright debug --fix` found: the models it tried, and what is raised."""

from __future__ import annotations

from collections.abc import Sequence

from modelwright.repairs import FixResult, FixRow, FixScore
from modelwright.report._units import human_bytes
from modelwright.report.fix import FRONT, raised_words, repair_word
from modelwright.report.html._kit import Cell, Column, Html, Row, join, number, paragraph, table
from modelwright.report.html._page import Note, Page, Section
from modelwright.report.html._words import shade


def repair_page(result: FixResult) -> Page:
    word, tone = repair_word(result), shade(result.status)
    return Page(
        kind="repair of a quantized model",
        title=result.wanted,
        verdict=(f"{word}: {result.reason}" if result.reason else word, tone),
        facts=(("target", result.target), ("builds", str(result.builds))),
        notes=repair_notes(result),
        sections=repair_sections(result),
    )


def repair_notes(result: FixResult) -> tuple[Note, ...]:
    words = [result.note] if result.note is not None else []
    if result.random_data:
        words.append("The samples of the repair are made up: real data can look different.")
    return tuple(map(Note, words))


def repair_sections(result: FixResult) -> tuple[Section, ...]:
    word, tone = repair_word(result), shade(result.status)
    found = [paragraph(f"{word}: {result.wanted}", tone)]
    if result.reason is not None:
        found.append(paragraph(result.reason))
    hint = f"{result.choose_samples} samples chose, {result.check_samples} others checked"
    repair = [Section("Repair", join((*found, _models(result, result.rows))), hint)]
    if len(result.front) > 1:
        repair.append(Section("Accuracy against size", _models(result, result.front), FRONT.partition(": ")[2]))
    if not result.raised:
        return tuple(repair)
    rows = [
        Row((Cell(raised_words(item)), Cell(item.node), Cell(f"{item.origin_share:.1%}", item.origin_share)))
        for item in sorted(result.raised, key=lambda item: -item.origin_share)
    ]
    columns = [Column("raise", long=True), Column("node", long=True), Column("noise share", True)]
    return *repair, Section("What gets more bits", table(columns, rows, by=2), str(len(rows)))


def _models(result: FixResult, shown: Sequence[FixRow]) -> Html:
    titles = ["raised", "size", "SQNR dB", "held out dB"]
    titles += ["metric", "metric held out"] if result.metric else []
    titles += ["CPU p50 ms", f"pieces on {result.target}", "nodes left"]
    columns = [Column("model", long=True), *(Column(title, True) for title in titles)]
    return table(columns, [Row(_cells(row, metric=result.metric is not None)) for row in shown])


def _cells(row: FixRow, *, metric: bool) -> tuple[Cell, ...]:
    return (
        Cell(row.name),
        number(row.raised, 0),
        Cell(human_bytes(row.file_bytes), row.file_bytes),
        _sqnr(row, row.choose),
        _sqnr(row, row.check),
        *((_metric(row.choose), _metric(row.check)) if metric else ()),
        number(row.p50_ms, 3),
        number(row.partitions, 0),
        number(row.left_nodes, 0),
    )


def _sqnr(row: FixRow, score: FixScore | None) -> Cell:
    if score is None or row.name == "float":
        return Cell("–")
    return number(score.sqnr_db, unknown=score.problem or "identical")


def _metric(score: FixScore | None) -> Cell:
    return number(score.metric if score is not None else None, 4)
