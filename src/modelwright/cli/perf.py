"""`wright perf`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelwright._output import check_output
from modelwright.cli._call import Answering, VerbCall, answer, kept_lines, told
from modelwright.cli._cluster import on_options
from modelwright.cli._measuring import LiveMonitor, input_options, loop_options
from modelwright.cli._options import (
    Output,
    component_option,
    html_option,
    limit_options,
    model_options,
    target_option,
    verb_options,
)
from modelwright.errors import ExecutionError

if TYPE_CHECKING:
    from modelwright.measure import PerfResult


@click.command("perf")
@model_options
@component_option
@target_option
@loop_options
@click.option(
    "--op-trace",
    "--op-tracing",
    "op_trace",
    is_flag=False,
    flag_value="basic",
    type=click.Choice(["basic", "detail"]),
    help="Also trace where the time goes, in a window of its own; `detail` adds shapes and bytes.",
)
@click.option("--trace-html", type=click.Path(path_type=Path), help="Write the trace as one HTML page.")
@click.option("--trace-chrome", type=click.Path(path_type=Path), help="Write the trace for chrome://tracing.")
@click.option("--monitor", is_flag=True, help="Watch CPU, memory and devices meanwhile; live on a terminal.")
@input_options()
@on_options
@limit_options
@verb_options
@html_option
def command(
    model: str, target: str, op_trace: str | None, trace_html: Path | None, trace_chrome: Path | None, monitor: bool,
    out: Output, **said: Any,
) -> int:  # fmt: skip
    """How fast MODEL runs on a target: latency, throughput, load time, memory.

    Each session runs in a fresh process, is warmed up until it is steady, and timed run by run. What was asked for and
    what was bound, where the nodes run and the state of the machine are part of the answer. A simulated device has no
    latency. MODEL is an .onnx file, a build folder, or a Hugging Face model, which is built for the target first.
    """
    for written in (trace_html, trace_chrome):
        check_output(written)
    said["op_trace"] = op_trace or ("basic" if trace_html or trace_chrome else None)
    call = VerbCall("perf", model, target, **said, trace_chrome=trace_chrome, monitor=monitor)
    # What another machine does is recorded there.
    watch = LiveMonitor(out) if monitor and not out.as_python and said["on"] is None else None
    how = Answering(
        code=_traced,
        also=lambda result: _page(result, trace_html),
        python=None if trace_html is None else f"result.op_trace.save_page({str(trace_html)!r})",
        progress=kept_lines if watch is None else lambda _: watch,
    )
    return answer(call, out, how, watch=watch)


def _page(result: PerfResult, path: Path | None) -> None:
    if path is not None and result.op_trace is not None and result.op_trace.has_data:
        result.op_trace.save_page(path)


def _traced(result: PerfResult) -> int:
    trace = result.op_trace
    if trace is not None and not trace.has_data:
        why = trace.error or trace.status.value
        raise told(ExecutionError("there is no trace", cause=why, fix="the latency stands; see the notes above"))
    return 0
