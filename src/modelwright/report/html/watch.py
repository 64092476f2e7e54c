"""The page of `wright watch run`."""

from __future__ import annotations

from modelwright.answers.watch import WatchCase, WatchResult
from modelwright.report.html._kit import Cell, Column, Row, Shade, join, paragraph, table
from modelwright.report.html._page import Note, Page, Section
from modelwright.report.watch import blame_lines, fix_lines, result_words, version_words

_TONES: dict[bool | None, Shade] = {True: "good", False: "bad", None: "fair"}


def watch_page(found: WatchResult) -> Page:
    suite = found.suite
    limits = (
        ("slower by at most", f"{suite.max_slowdown:.0%}"),
        ("more memory by at most", f"{suite.max_growth:.0%}"),
        ("false alarms at most", f"{suite.alpha:.0%}"),
        ("budget of a case", f"{suite.budget_s:g} s"),
    )
    changed = join([paragraph(words) for words in version_words(found)]) or paragraph("the same packages on both sides")
    return Page(
        kind="what an upgrade changed",
        title=suite.name,
        verdict=(result_words(found), _TONES[found.passed]),
        facts=limits,
        notes=tuple(Note(words, "") for words in fix_lines(found)),
        sections=(*map(_case, found.cases), Section("Versions that changed", changed)),
        footer=f"watched at {found.made_at}",
    )


def _case(case: WatchCase) -> Section:
    rows = [Row((Cell(row.aspect), Cell(row.word, tone=_TONES[row.passed]), Cell(row.sentence))) for row in case.rows]
    body = table([Column("aspect"), Column("answer"), Column("why", long=True)], rows)
    sides = f"{case.target}, {case.old or 'does not run'} against {case.new or 'does not run'}"
    return Section(case.name, join([body, *(paragraph(words) for words in blame_lines(case))]), sides)
