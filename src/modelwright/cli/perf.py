"""`wright perf`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelwright._lazy import lazy
from modelwright._output import check_output, write_output
from modelwright.cli._measuring import (
    Extras,
    LiveMonitor,
    input_options,
    look_options,
    loop_options,
    told,
)
from modelwright.cli._options import Output, html_option, limit_options, model_options, output_options, save_option
from modelwright.cli._signals import delivered
from modelwright.cli._subject import ModelFile, model_file
from modelwright.errors import ExecutionError

if TYPE_CHECKING:
    from modelwright import measure
    from modelwright.report import html as pages
    from modelwright.report import perf as report
else:
    measure = lazy("modelwright.measure")
    report = lazy("modelwright.report.perf")
    pages = lazy("modelwright.report.html")


@click.command("perf")
@model_options
@click.option("--component", help="Which part of a model that was built in several, for example encoder.")
@click.option("--target", default="cpu", show_default=True, help="EP and device, for example qnn-npu.")
@loop_options
@look_options
@input_options
@save_option
@limit_options
@output_options
@html_option
def command(
    model: str,
    component: str | None,
    target: str,
    options: measure.PerfOptions,
    extras: Extras,
    inputs: measure.InputChoice,
    save: Path | None,
    out: Output,
) -> None:
    """How fast MODEL runs on a target: latency, throughput, load time, memory.

    Each session runs in a fresh process, is warmed up until it is steady, and timed run by run. What was asked for and
    what was bound, where the nodes run and the state of the machine are part of the answer. A simulated device has no
    latency. MODEL is an .onnx file, a build folder, or a Hugging Face model, which is built for the target first.
    """
    for written in (save, extras.trace_html, options.trace_chrome):
        check_output(written)
    file = model_file(model, target, component, out)
    asked = replace(options, inputs=replace(inputs, recorded=file.inputs))
    try:
        with LiveMonitor(out) if extras.monitor else nullcontext() as watch:
            result = measure.perf(file.path, target, asked, on_progress=watch or out.tell, watch=watch)
    except measure.MeasurementInterrupted as stop:
        _finish(stop.partial, file, save, out)
        raise
    except measure.MeasurementFailed as error:
        _finish(error.partial, file, save, out)
        raise told(error) from None
    _finish(result, file, save, out)
    if result.op_trace is not None:
        if extras.trace_html is not None and result.op_trace.has_data:
            write_output(extras.trace_html, pages.page(result.op_trace))
        if not result.op_trace.has_data:
            why = result.op_trace.error or result.op_trace.status.value
            raise told(ExecutionError("there is no trace", cause=why, fix="the latency stands; see the notes above"))


def _finish(result: measure.PerfResult, file: ModelFile, save: Path | None, out: Output) -> None:
    result = replace(result, model=file.built_from or result.model)
    with delivered():
        if save is not None:
            result.save(save)
        out.draw(result)
        out.answer("perf", result, lambda _, console: report.render_perf(result, console))
