"""`wright inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelwright._json import plain
from modelwright._lazy import lazy
from modelwright.cli._options import Output, model_options, output_options

if TYPE_CHECKING:
    from modelwright import graph
    from modelwright.report import model as report
else:
    graph = lazy("modelwright.graph")
    report = lazy("modelwright.report.model")


@click.command("inspect")
@model_options
@output_options
def command(model: str, out: Output) -> None:
    """What is inside MODEL (.onnx): I/O, operators, measured precision, external data, fingerprint.

    Weights in external files are checked and hashed, never loaded. The fingerprint is the same for two files that hold
    the same graph and weights, whatever their layout and node names. What no runtime can use is refused (exit 3):
    cycles, values nobody makes, tensors that are not as large as they say.
    """
    loaded = graph.load(Path(model))
    found = graph.summary(loaded)
    mark = graph.fingerprint(loaded)
    answer = {"fingerprint": mark, **plain(found)}
    out.answer("inspect", answer, lambda _, console: report.render_model(found, mark, console))
