"""The page of `wright ship`."""

from __future__ import annotations

from pathlib import PurePath

from modelwright.answers.ship import ShipResult
from modelwright.report._units import human_bytes
from modelwright.report.html._kit import Cell, Column, Html, Row, Shade, join, paragraph, table
from modelwright.report.html._page import Note, Page, Section
from modelwright.report.ship import chosen_words, fix_lines, needs_words, reason_words, verdict_words

_TONES: dict[bool | None, Shade] = {True: "good", False: "bad", None: "fair"}


def ship_page(found: ShipResult) -> Page:
    return Page(
        kind="package for users' machines",
        title=PurePath(found.model).name,
        verdict=(verdict_words(found), _TONES[found.passed]),
        facts=(
            ("folder", found.folder.name),
            ("size", human_bytes(found.size)),
            ("licence", found.licence or "not said"),
            ("seal", found.selection_seal),
        ),
        notes=tuple(Note(words, "") for words in fix_lines(found)),
        sections=(
            Section("Variants", _variants(found), "in the order in which a machine is asked for them"),
            Section("Gates", _gates(found)),
            Section("What was taken", join([paragraph(chosen_words(one)) for one in found.chosen])),
        ),
    )


def _variants(found: ShipResult) -> Html:
    titles = ("variant", "can go", "size", "needs")
    rows = [
        Row(
            (
                Cell(one.target, small=one.precision),
                Cell(one.carried, small=one.carried_because),
                Cell(human_bytes(one.size), one.size),
                Cell(needs_words(one)),
            )
        )
        for one in found.variants
    ]
    return table([Column(title, title == "size", title in ("variant", "can go", "needs")) for title in titles], rows)


def _gates(found: ShipResult) -> Html:
    rows = [
        Row(
            (
                Cell(row.gate),
                Cell(row.target or "all"),
                Cell(row.word, tone=_TONES[row.holds]),
                Cell(reason_words(row)),
            )
        )
        for row in found.gates
    ]
    return table([Column("gate"), Column("variant", long=True), Column("answer"), Column("why", long=True)], rows)
