"""`wright show`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import modelwright as mw
from modelwright._json import loads
from modelwright._lazy import lazy
from modelwright._output import write_new
from modelwright.cli._options import Output, html_option, output_options, write_document
from modelwright.cli._streams import write_utf8
from modelwright.errors import UsageError

if TYPE_CHECKING:
    from modelwright import evidence
    from modelwright import store as stores
    from modelwright.evidence import Record, RecordLine
    from modelwright.report import render, show, table
else:
    evidence = lazy("modelwright.evidence")
    render = lazy("modelwright.report.render")
    show = lazy("modelwright.report.show")
    stores = lazy("modelwright.store")
    table = lazy("modelwright.report.table")

_SUPPORT = ("support gate", "support run", "support batch")
_KINDS = ("perf", "compare", "eval", "debug", "repair", "analyze", "build", "tune", "sweep", "experiment", *_SUPPORT)
_STDOUT = Path("-")


@click.command("show")
@click.argument("record", required=False)
@click.option("--list", "listing", is_flag=True, help="List the records in the store, newest first.")
@click.option("--model", help="With --list: about this file or folder (by content), or with this in its name.")
@click.option("--target", help="With --list: for this target, or one that begins so.")
@click.option("--kind", type=click.Choice(_KINDS), help="With --list: answers of this kind.")
@click.option("--since", type=click.DateTime(), help="With --list: not older, for example 2026-11-16.")
@click.option("--csv", type=click.Path(path_type=Path, dir_okay=False), help="Write the rows to a new file; - prints.")
@click.option("--markdown", is_flag=True, help="Print the rows as a Markdown table.")
@output_options
@html_option
def command(
    record: str | None,
    listing: bool,
    csv: Path | None,
    markdown: bool,
    out: Output,
    **asked: Any,
) -> None:
    """Show RECORD again, a file that --save wrote or the beginning of an id, as its command showed it.

    Every perf, compare, eval, debug, analyze, build, repair and tune keeps a record in the store: what was found, about
    which files, where and how, with every sample. --csv and --markdown give the rows behind the answer, or the list.
    """
    if (record is None) != listing or (not listing and any(asked.values())) or (listing and out.html is not None):
        raise UsageError(
            "say which record to show, or how to list them",
            cause="RECORD shows one, --list lists, and --model, --target, --kind and --since narrow the list",
            fix="wright show --list, then wright show with the beginning of an id",
        )
    if listing:
        lines = _listed(**asked)
        if not _exported(table.lines_table(lines), csv, markdown, out):
            out.answer("show", {"records": lines}, lambda _, console: show.render_records(lines, console))
        return
    found = mw.read(str(record))
    out.draw(found.payload)
    if not _exported(table.rows_of(found.payload), csv, markdown, out):
        _answer(found, out)


def _listed(model: str | None, target: str | None, kind: str | None, since: datetime | None) -> Sequence[RecordLine]:
    moment = since.astimezone() if since is not None else None
    with stores.Store() as store:
        return evidence.list_records(store, evidence.Wanted(model, target, kind, moment))


def _exported(rows: table.Table, csv: Path | None, markdown: bool, out: Output) -> bool:
    """Whether the rows are what was printed."""
    if csv is not None and csv != _STDOUT:
        write_new(csv, rows.csv())
        out.note(f"wrote {csv}")
    if markdown or csv == _STDOUT:
        write_utf8(rows.markdown() if markdown else rows.csv())
    return markdown or csv == _STDOUT


def _answer(found: Record[Any], out: Output) -> None:
    if out.json:
        write_document({name: value for name, value in loads(found.text).items() if name != "seal"})
        return
    out.note(show.headline(found))
    render.render(found.payload, out.console(sys.stdout))
