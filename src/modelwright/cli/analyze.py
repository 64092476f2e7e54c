"""`wright analyze`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from modelwright._lazy import lazy
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._options import Output, html_option, limit_options, model_options, output_options, target_options

if TYPE_CHECKING:
    from modelwright import models
    from modelwright import pipeline as building
    from modelwright.report import analysis as report
    from modelwright.targets import Target
else:
    building = lazy("modelwright.pipeline")
    models = lazy("modelwright.models")
    report = lazy("modelwright.report.analysis")


@click.command("analyze")
@model_options
@target_options
@click.option("--suggest/--no-suggest", default=True, help="Try changes that could move more nodes to the target.")
@limit_options
@output_options
@html_option
def command(model: str, wanted: tuple[Target, ...], suggest: bool, out: Output) -> int:
    """Which nodes of MODEL (.onnx or build folder) each target really takes: its own partitioner is asked.

    Every suggestion was tried and its effect on the placement measured. Where no such EP can be asked on this machine
    it says so; it never guesses. Exit 1 when nodes remain that a target cannot take, 6 when one could not
    be asked.
    """
    path = models.onnx_of(model)
    found = [building.analyze(path, target, suggest=suggest) for target in wanted]
    out.draw(building.Analyses(tuple(found)))
    out.answer(
        "analyze", {"analyses": report.documents(found)}, lambda _, console: report.render_analyses(found, console)
    )
    answers = {analysis.supported for analysis in found}
    return NO if False in answers else CANNOT_TELL if None in answers else 0
