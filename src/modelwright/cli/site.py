"""`wright site`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

import modelwright as mw
from modelwright._lazy import lazy
from modelwright.cli._call import one_line
from modelwright.cli._group import CommandGroup
from modelwright.cli._options import Output, output_options, write_document

if TYPE_CHECKING:
    from modelwright import home
    from modelwright.api.site import SiteBuilt
    from modelwright.report import render, serving
else:
    home = lazy("modelwright.home")
    render = lazy("modelwright.report.render")
    serving = lazy("modelwright.report.serving")

_catalogue = click.option(
    "--recipes",
    "catalogue",
    type=click.Path(path_type=Path, file_okay=False),
    help="Another catalogue than the one that came with wright.",
)


@click.group("site", cls=CommandGroup)
def command() -> None:
    """Everything that is known as pages: models by targets, records, support, findings, history."""


@command.command("build")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The folder to write it to.")
@_catalogue
@output_options
def build(output: Path, catalogue: Path | None, out: Output) -> None:
    """Write the site into a folder. It needs no server: open index.html.

    Numbers are those of records of the store, the ledger of the matrix, the catalogue and the findings; nothing is
    measured. An earlier site there is replaced.
    """
    _answer(_built(output, catalogue, out), out)


@command.command("serve")
@click.option("--port", type=click.IntRange(0, 65535), default=8767, show_default=True, help="On this machine only.")
@_catalogue
@output_options
def serve(port: int, catalogue: Path | None, out: Output) -> None:
    """Build the site and show it on this machine until ctrl-C.

    It is built again when its first page is asked for and the last build is older than five seconds.
    """
    folder = home.home() / "site"
    found = _built(folder, catalogue, out)
    serving.serve_site(
        folder,
        port,
        again=lambda: mw.site(folder, catalogue=catalogue),
        ready=lambda address: _answer(found, out, address),
    )


def _built(folder: Path, catalogue: Path | None, out: Output) -> SiteBuilt:
    with one_line(out) as line:
        return mw.site(folder, catalogue=catalogue, on_progress=line)


def _answer(found: SiteBuilt, out: Output, address: str | None = None) -> None:
    if out.json:
        write_document({**found.to_dict(), "address": address})
    else:
        render.render(found, out.console(sys.stdout))
        if address is not None:
            click.echo(address)
    sys.stdout.flush()
