"""`wright catalog`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

import modelwright as mw
from modelwright._json import plain
from modelwright._lazy import lazy
from modelwright.cli._building import build_code, folder_options
from modelwright.cli._call import one_line, say_record
from modelwright.cli._data import data_options
from modelwright.cli._exits import NO
from modelwright.cli._group import CommandGroup
from modelwright.cli._options import Output, limit_options, output_options, write_document

if TYPE_CHECKING:
    from modelwright.report import catalog as report
    from modelwright.report import render
else:
    render = lazy("modelwright.report.render")
    report = lazy("modelwright.report.catalog")

F = TypeVar("F", bound=Callable[..., Any])


@click.group("catalog", cls=CommandGroup)
def command() -> None:
    """Recipes that were shown to work, each about one pinned model.

    `wright build MODEL -r catalog` uses the one that is about MODEL, `-r catalog:NAME` the one that is called so.
    """


def _folder_option(function: F) -> F:
    return click.option(
        "--recipes",
        "folder",
        type=click.Path(path_type=Path, file_okay=False),
        help="Another catalogue than the one that came with wright.",
    )(function)


@command.command("list")
@_folder_option
@output_options
def list_(folder: Path | None, out: Output) -> None:
    """Every entry on each of its targets, with the level that is shown of it."""
    rows = mw.catalog.entries(folder=folder)
    out.answer("catalog list", {"rows": rows}, lambda _, console: report.render_rows(rows, console))


@command.command("show")
@click.argument("name")
@_folder_option
@output_options
def show(name: str, folder: Path | None, out: Output) -> None:
    """One entry: which model, where it comes from, its recipe, and what is shown of it."""
    entry = mw.catalog.entry(name, folder=folder)
    rows = tuple(row for row in mw.catalog.entries(folder=folder) if row.entry == name)
    answer = {"name": entry.name, "entry": _said(entry.said), "recipe": entry.recipe, "rows": rows}
    out.answer("catalog show", answer, lambda _, console: report.render_entry(entry, rows, console))


@command.command("lint")
@_folder_option
@output_options
def lint(folder: Path | None, out: Output) -> int:
    """Read and resolve every entry; build nothing.

    Exit 1 for unknown or inert fields, wrong names, hidden characters, a pin that does not fit, evidence that is about
    something else or older than what it speaks of, and a known-bad entry that expired.
    """
    found = mw.catalog.lint(folder=folder)
    answer = {"clean": found.clean, **found.content()}
    out.answer("catalog lint", answer, lambda _, console: report.render_catalog_lint(found, console))
    return 0 if found.clean else NO


@command.command("index")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 where the index is not what the entries give.")
@_folder_option
@output_options
def index(check: bool, folder: Path | None, out: Output) -> int:
    """Write index.json of the catalogue from its entries."""
    found = mw.catalog.index(folder=folder, check=check)
    line = f"{len(found.rows)} rows: {found.state}"
    out.answer("catalog index", found.content(), lambda _, console: console.print(line))
    return NO if found.state == "stale" else 0


@command.command("build")
@click.argument("name")
@click.option(
    "-m", "--model", type=click.Path(), help="Where the model is, for an entry about one that has to be brought."
)
@click.option("--anyway", is_flag=True, help="Also build what is known to be bad.")
@data_options(partly=True)
@folder_options
@_folder_option
@limit_options
@output_options
def build(name: str, out: Output, **said: Any) -> int:
    """Build entry NAME for each of its targets, from the very content that it is about."""
    with one_line(out) as line:
        found = mw.catalog.build(name, **said, on_progress=line)
    if out.json:
        write_document(found.to_dict())
    else:
        render.render(found, out.console(sys.stdout))
    say_record(found, out)
    return build_code(found)


def _said(entry: object) -> dict[str, Any]:
    return {key: value for key, value in plain(entry).items() if value is not None}
