"""`wright sys`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from modelwright._lazy import lazy
from modelwright.cli._options import Output, output_options

if TYPE_CHECKING:
    from modelwright import targets
    from modelwright.report import survey as report
else:
    targets = lazy("modelwright.targets")
    report = lazy("modelwright.report.survey")


@click.command("sys")
@output_options
def command(out: Output) -> None:
    """What this machine can target, and why not the rest.

    Every installed execution provider is loaded, asked for its devices and made to compute one small sum,
    each in a child process of its own: a plugin that crashes or hangs costs only its own row.
    """
    out.answer("sys", targets.survey(), report.render_survey)
