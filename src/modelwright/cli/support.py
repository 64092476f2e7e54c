"""`wright support`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

import modelwright as mw
from modelwright._lazy import lazy
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._options import Output, output_options, source_options, write_document

if TYPE_CHECKING:
    from modelwright.report import render
else:
    render = lazy("modelwright.report.render")


@click.group("support")
def command() -> None:
    """Adding models: what one needs to be built."""


@command.command("probe")
@source_options
@output_options
def probe(model: str, about: dict[str, Any], out: Output) -> int:
    """The least that it takes to build MODEL, without loading its weights.

    Its class and how the checkpoint's names fit it, its graphs and their inputs, what can calibrate and score it, and
    the effort: nothing, a setting, a file for its type, or something that other models would share. It is the least:
    only a build shows that it does. Exit 1 where a build lacks something, 6 where nobody can tell without the weights.
    """
    found = mw.support.probe(model, **about)
    if out.json:
        write_document(found.to_dict())
    else:
        render.render(found, out.console(sys.stdout))
    return {True: 0, False: NO, None: CANNOT_TELL}[found.builds]
