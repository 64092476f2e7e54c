"""What `wright catalog` and `wright support list` answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.recipes import CatalogEntry, CatalogLint, IndexRow
from modelwright.report._tables import Col, fitted

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")


def render_rows(rows: Sequence[IndexRow], console: rich.console.Console) -> None:
    columns = [Col("entry", "name"), Col("task", "text", drop=2), Col("target", "name"), Col("precision"), Col("level")]
    columns.append(Col("licence", drop=3))
    cells = [(one.entry, one.task or "-", one.target, one.precision or "-", _level(one), one.licence) for one in rows]
    if rows:
        console.print(fitted(columns, cells, console.width))
    shown = sum(one.level is not None for one in rows)
    count = len({one.entry for one in rows})
    console.print(f"{count} entries, {len(rows)} rows, {shown} with a level that is shown", soft_wrap=True)


def render_support(rows: Sequence[IndexRow], today: date, console: rich.console.Console) -> None:
    columns = [Col("family"), Col("target", "name"), Col("precision", drop=1), Col("level"), Col("age", "number")]
    columns.append(Col("entry", "name"))
    cells = [
        (one.family or "-", one.target, one.precision or "-", _level(one), age_words(one, today), one.entry)
        for one in rows
    ]
    if rows:
        console.print(fitted(columns, cells, console.width))
    families = {one.family for one in rows if one.family is not None}
    console.print(f"{len(families)} families, {len(rows)} rows", soft_wrap=True)


def age_words(row: IndexRow, today: date) -> str:
    if row.shown_on is None:
        return "-"
    days = (today - date.fromisoformat(row.shown_on)).days
    return f"{days} day{'' if days == 1 else 's'}"


def render_entry(entry: CatalogEntry, rows: Sequence[IndexRow], console: rich.console.Console) -> None:
    said = entry.said
    facts = [("source", said.source), ("pin", said.pin), ("licence", said.licence), ("origin", said.origin)]
    facts += [("task", rows[0].task if rows else said.task), ("family", rows[0].family if rows else said.model_type)]
    console.print(rich.text.Text(entry.name, style="bold"), soft_wrap=True)
    for title, value in facts:
        if value is not None:
            console.print(rich.text.Text.assemble((f"{title}: ", "dim"), value), soft_wrap=True)
    for row in rows:
        words = f"{row.target} {row.precision or ''}".rstrip()
        console.print(rich.text.Text.assemble((f"{words}: ", "dim"), _level(row), f" {row.shown_on or ''}".rstrip()))
    if said.known_bad is not None:
        console.print(rich.text.Text(f"known to be bad: {rows[0].known_bad}", style="red"), soft_wrap=True)


def render_catalog_lint(found: CatalogLint, console: rich.console.Console) -> None:
    for one in found.problems:
        console.print(rich.text.Text.assemble((one.entry, "red"), f" {one.rule}: {one.problem}"), soft_wrap=True)
    said = "all good" if found.clean else f"{len(found.problems)} problems"
    console.print(f"{found.entries} entries: {said}", soft_wrap=True)


def _level(row: IndexRow) -> rich.text.Text:
    if row.known_bad is not None:
        return rich.text.Text("bad", style="red")
    return rich.text.Text(row.level or "not shown", style="green" if row.level else "dim")
