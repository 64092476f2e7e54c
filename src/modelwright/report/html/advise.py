"""The page of `wright advise`."""

from __future__ import annotations

from pathlib import PurePath

from modelwright.answers import Decision, held
from modelwright.report.advise import advice, next_steps, offer_cells, tone
from modelwright.report.html._kit import Cell, Column, Html, Row, Shade, join, paragraph, table
from modelwright.report.html._page import Note, Page, Section

_TONES: dict[bool | None, Shade] = {True: "good", False: "bad", None: "fair"}


def advice_page(found: Decision) -> Page:
    wanted = found.wanted
    limits = {
        "drop": wanted.max_drop,
        "nine of ten runs within": None if wanted.latency_ms is None else f"{wanted.latency_ms:g} ms",
        "memory": None if wanted.memory_bytes is None else f"{wanted.memory_bytes / 2**20:,.0f} MiB",
    }
    return Page(
        kind="which build to take",
        title=PurePath(found.model).name,
        verdict=(advice(found), tone(found)),
        facts=tuple((name, words or "not asked") for name, words in limits.items()),
        notes=(
            *(Note(f"changed since: {words}") for words in found.changed),
            *(Note(f"next: {words}", "") for words in next_steps(found)),
        ),
        sections=(
            Section("What was built", _offers(found)),
            Section("Why", join([paragraph(words) for words in (*found.reasons, *found.would_change)])),
        ),
    )


def _offers(found: Decision) -> Html:
    titles = ("build", "asked", "typical run", "nine of ten", "memory", "size", "accuracy")
    rows = []
    for offer in found.offers:
        name, asked, *rest = offer_cells(offer, found)
        cells = (Cell(name), Cell(asked, tone=_TONES[held(offer, found.wanted)]), *map(Cell, rest))
        rows.append(Row(cells, lit=offer.name == found.chosen))
    return table([Column(title, long=title == "accuracy") for title in titles], rows)
