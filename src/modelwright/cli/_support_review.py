"""`wright support list`, `report` and `review`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import modelwright as mw
from modelwright._lazy import lazy
from modelwright.cli._call import one_line
from modelwright.cli._exits import NO
from modelwright.cli._options import Output, html_option, output_options, write_document
from modelwright.cli._streams import write_utf8

if TYPE_CHECKING:
    from modelwright.report import catalog, render, support_report
else:
    catalog = lazy("modelwright.report.catalog")
    render = lazy("modelwright.report.render")
    support_report = lazy("modelwright.report.support_report")


@click.command("list")
@click.option("--family", help="Only of this model type.")
@click.option("--target", help="Only for this target.")
@output_options
def list_command(family: str | None, target: str | None, out: Output) -> None:
    """What is shown of which model family on which target, and how old that is."""
    rows = mw.support.shown(family=family, target=target)
    today = datetime.now(UTC).date()
    out.answer("support list", {"rows": rows}, lambda _, console: catalog.render_support(rows, today, console))


@click.command("report")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@output_options
@html_option
def report_command(folder: Path, out: Output) -> None:
    """The text of a contribution, from its records alone.

    Prints Markdown, and writes it to report.md in FOLDER: what a pull request says. Refused while a claimed row has no
    record. It names the files that the effort allows; pushing them is yours to do.
    """
    found = mw.support.report(folder)
    out.draw(found)
    if out.json:
        write_document(found.to_dict())
    else:
        write_utf8(support_report.markdown(found))


@click.command("review")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--ref", metavar="COMMIT", help="Review this commit of the repository, from a fresh clone.")
@click.option("--base", help="What the commit is compared with; default: where it left main.")
@click.option("-m", "--model", type=click.Path(), help="Where the model is here.")
@click.option("--data", type=click.Path(), help="Where the data is here.")
@click.option("--metric", type=click.Path(), help="The file of its metric, which you have read.")
@click.option("--evidence-only", is_flag=True, help="Read the records and build nothing; never approves.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), help="Keep the evidence of this review."
)
@output_options
def review_command(folder: Path, out: Output, **said: Any) -> int:
    """Believe nothing: build the contribution in FOLDER again and compare.

    A fresh clone, an empty store, a clean environment and seeds that are drawn now. Approved is what reproduces row by
    row, or is blocked here too; anything else is exit 1, with the row and the reason.
    """
    with one_line(out) as line:
        found = mw.support.review(folder, **said, on_progress=line)
    if out.json:
        write_document(found.to_dict())
    else:
        render.render(found, out.console(sys.stdout))
    return 0 if found.approved else NO
