"""The page of `wright diagnose`."""

from __future__ import annotations

from pathlib import PurePath

from modelwright.answers import Diagnosis, LogReading
from modelwright.report.diagnose import headline
from modelwright.report.html._kit import Cell, Column, Row, Shade, number, table
from modelwright.report.html._page import Page, Section

_TONES: dict[bool | None, Shade] = {True: "good", False: "bad", None: "fair"}


def diagnosis_page(found: Diagnosis) -> Page:
    about = found.model or (found.log.file if found.log is not None else "")
    sections = [] if found.log is None else _log(found.log)
    return Page(
        kind="what is wrong",
        title=PurePath(about).name,
        verdict=(headline(found), _TONES[found.healthy]),
        sections=tuple(sections),
    )


def _log(log: LogReading) -> list[Section]:
    known = [
        Row(
            (
                number(cause.line, 0),
                Cell(cause.about),
                Cell(cause.cause),
                Cell(cause.next),
                Cell(cause.text, small=", ".join((*((cause.known_of,) if cause.known_of else ()), *cause.sources))),
            )
        )
        for cause in log.causes
    ]
    columns = [
        Column("line", True),
        Column("who"),
        Column("means", long=True),
        Column("next", long=True),
        Column("text", long=True),
    ]
    sections = [Section("In the log", table(columns, known), f"{log.file}, {log.lines:,} lines")] if known else []
    unknown = [Row((number(line.line, 0), number(line.times, 0), Cell(line.text))) for line in log.unknown]
    if unknown:
        body = table([Column("line", True), Column("times", True), Column("text", long=True)], unknown)
        sections.append(Section("Not known here", body, "lines that sound like an error"))
    return sections
