"""The page of `wright diagnose`."""

from __future__ import annotations

from pathlib import PurePath

from modelwright.answers import Cause, Diagnosis, LogReading, LookedAt, TriedCure
from modelwright.report.diagnose import headline, smallest_words
from modelwright.report.html._kit import Cell, Column, Html, Row, Shade, join, number, paragraph, table
from modelwright.report.html._page import Note, Page, Section

_TONES: dict[bool | None, Shade] = {True: "good", False: "bad", None: "fair"}
_HELD = {True: "cures it", False: "does not", None: "cannot tell"}
_OK = {True: "good", False: "bad", None: "unknown"}


def diagnosis_page(found: Diagnosis) -> Page:
    about = found.model or (found.log.file if found.log is not None else "")
    where = f" on {found.target}" if found.target else ""
    notes = [*map(Note, found.undecided), *(Note(f"next: {words}", "") for words in found.next_steps)]
    if found.smallest is not None:
        notes.append(Note(smallest_words(found), ""))
    sections = [_cause(cause) for cause in found.causes]
    sections += [_looks(found.looked_at)] if found.looked_at else []
    sections += [] if found.log is None else _log(found.log)
    return Page(
        kind="what is wrong",
        title=f"{PurePath(about).name}{where}",
        verdict=(headline(found), _TONES[found.healthy]),
        facts=(("symptom", found.symptom or "none named"),) if found.model else (),
        notes=tuple(notes),
        sections=tuple(sections),
    )


def _cause(cause: Cause) -> Section:
    parts = [paragraph(fact) for fact in cause.shown_by]
    parts += [paragraph(f"where: {', '.join(cause.where)}")] if cause.where else []
    parts += [_cures(cause.cures)] if cause.cures else []
    parts += [paragraph(f"next: {cause.remedy}")] if cause.remedy else []
    parts += [paragraph(f"see: {', '.join(cause.cites)}", "more")] if cause.cites else []
    return Section(cause.sentence, join(parts), cause.rule)


def _cures(cures: tuple[TriedCure, ...]) -> Html:
    columns = [
        Column("tried", long=True),
        Column("how", long=True),
        Column("result"),
        Column("before", long=True),
        Column("after", long=True),
    ]
    rows = [
        Row(
            (
                Cell(cure.title),
                Cell(cure.how),
                Cell(_HELD[cure.held], tone=_TONES[cure.held]),
                Cell(cure.before),
                Cell(cure.after),
            )
        )
        for cure in cures
    ]
    return table(columns, rows)


def _looks(looks: tuple[LookedAt, ...]) -> Section:
    rows = [Row((Cell(look.what), Cell(_OK[look.ok], tone=_TONES[look.ok]), Cell(look.said))) for look in looks]
    return Section("Looked at", table([Column("what"), Column("it is"), Column("said", long=True)], rows))


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
