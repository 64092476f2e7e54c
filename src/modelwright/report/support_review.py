"""What a review found, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.report._tables import Col, fitted
from modelwright.report.support_report import markdown
from modelwright.support import SupportReport, SupportReview

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")

_STYLES = {
    "approve": "bold green",
    "changes": "bold yellow",
    "reject": "bold red",
    "reproduced": "green",
    "contradicted": "red",
    "stale": "yellow",
    "unverified": "yellow",
}


def render_report(found: SupportReport, console: rich.console.Console) -> None:
    console.print(rich.text.Text(markdown(found)), soft_wrap=True)


def render_review(found: SupportReview, console: rich.console.Console) -> None:
    columns = [Col("level"), Col("target", "name"), Col("precision", drop=2), Col("part", drop=1)]
    columns += [Col("claimed"), Col("here"), Col("review"), Col("why", "text")]
    rows = [
        (
            row.level,
            row.target,
            row.precision,
            row.component or "whole",
            row.claimed,
            row.found or "-",
            rich.text.Text(row.word, style=_STYLES[row.word]),
            row.reason,
        )
        for row in found.rows
    ]
    if rows:
        console.print(fitted(columns, rows, console.width))
    said, here = found.gate
    console.print(f"gate: {said or 'no record'}, here {here or 'not asked'}", soft_wrap=True)
    for one in found.findings:
        # What decided stands below, once.
        if f"{one.row or one.rule}: {one.reason}" in found.reasons:
            continue
        what = f"{one.rule} {one.row}" if one.row else one.rule
        words = (f"{what}: ", "bold"), (one.word, _STYLES[one.word]), f", {one.reason}"
        console.print(rich.text.Text.assemble(*words), soft_wrap=True)
    where = f"commit {found.commit[:12]}" if found.commit else "the folder as it is"
    told = f" {where}, {found.mode}; {found.planted} planted defects were found first"
    console.print(rich.text.Text.assemble((found.verdict, _STYLES[found.verdict]), f":{told}"), soft_wrap=True)
    for reason in found.reasons:
        console.print(rich.text.Text(f"  {reason}"), soft_wrap=True)
