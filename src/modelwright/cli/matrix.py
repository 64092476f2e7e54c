"""`wright matrix`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import modelwright as mw
from modelwright._lazy import lazy
from modelwright._output import check_output
from modelwright.cli._call import Answering, VerbCall, answer, kept_lines
from modelwright.cli._cluster import scheduler_options
from modelwright.cli._data import data_options
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._group import CommandGroup
from modelwright.cli._options import (
    Output,
    html_option,
    limit_options,
    output_options,
    target_options,
    verb_options,
    write_document,
)
from modelwright.cli._types import Size

if TYPE_CHECKING:
    from modelwright import farm
    from modelwright.api import matrix as api
    from modelwright.report import matrix as report
    from modelwright.targets import Target
else:
    api = lazy("modelwright.api.matrix")
    farm = lazy("modelwright.farm")
    report = lazy("modelwright.report.matrix")

_REPORT, _PAGE = "matrix.json", "matrix.html"
_REFRESH_S = 1.0


@click.group("matrix", cls=CommandGroup)
def command() -> None:
    """Many models for many targets: what they share is made once, what is finished is never done again.

    Every (model, target) is a cell in a ledger of the store: pending, leased, building, built, validated, uploading,
    published, or failed with a class. The same command goes on after a kill.
    """


@command.command("run")
@click.argument("models", type=click.Path(path_type=Path))
@target_options
@click.option("--to", help="Feed to publish to what passes its gate: a folder, oci://…; see `wright publish`.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Folder for the builds, matrix.json and the pages."
)
@click.option("--plan", is_flag=True, help="Show every cell and what they share; run and write nothing.")
@data_options(partly=True)
@click.option("--compile/--no-compile", default=None, help="EPContext, where the EP has it; default: for a named chip.")
@click.option("--group", "groups", multiple=True, help="Only rows of this group; repeatable.")
@click.option("--priority", "priorities", type=click.IntRange(0, 9), multiple=True, help="Only these; repeatable.")
@click.option("--disk", type=Size(), help="What the store may hold, for example 20GB; what nobody holds goes first.")
@click.option("--workers", type=click.IntRange(min=1), help="Stages at a time. Default: the CPUs of this process.")
@click.option("--unjudged", is_flag=True, help="Also publish builds that nobody could judge: no real data.")
@click.option(
    "--perf", is_flag=True, help="Then time every build where a machine has its device; a simulator has no time."
)
@click.option(
    "--eval", "evaluate", is_flag=True, help="Then score every build on its data, beside the model as it came."
)
@click.option("--trust-remote-code", is_flag=True, help="Run Python code that comes with models.")
@scheduler_options
@limit_options
@verb_options
@html_option
def run(
    models: Path, targets: tuple[Target, ...] | None, output: Path | None, plan: bool, out: Output, **said: Any
) -> int:
    """Build every model of MODELS for every target, and publish what passes its gate.

    MODELS is a JSON or TOML list of ids, folders and ONNX files, or of tables with task, precision, priority, group and
    data (`wright matrix schema`). Without --target: qnn-npu, qnn-gpu, openvino-cpu, openvino-npu, openvino-gpu, cpu,
    dml-gpu and vitisai-npu, each in the precision of its policy; no chip is needed. Exit 1 when a cell failed, 5 when
    the feed takes nothing any more, 6 when some could not be judged.
    """
    if plan:
        unused = ("disk", "workers", "scheduler", "tls", "perf", "evaluate")
        asked = VerbCall("matrix_plan", models, targets, **{key: said[key] for key in said if key not in unused})
        return answer(asked, out, Answering("matrix run"))
    call = VerbCall("matrix", models, targets, output=output, **said)
    return _run(call, output, out)


@command.command("status")
@click.option("--watch", is_flag=True, help="Look again every second until nothing is left to do.")
@output_options
@html_option
def status(watch: bool, out: Output) -> int:
    """How the last matrix stands, also while it runs. Exit 1 when a cell failed, 6 when it is not known yet."""
    found = mw.matrix_status()
    if watch and not out.json:
        found = _watched(out)
    out.draw(found)
    if out.json:
        write_document({**found.to_dict(), "command": "matrix status"})
    else:
        report.render_matrix(found, out.console(sys.stdout))
    return _code(found)


@command.command("explain")
@click.argument("model")
@click.argument("target")
@output_options
def explain(model: str, target: str, out: Output) -> None:
    """Everything about one cell: what it is, every event with its time and worker, why it failed, the next step."""
    found = mw.matrix_status().find(model, target)
    events = {one.cell.id: api.cell_events(one.cell.id) for one in found}
    document = {"cells": found, "events": {name: list(lines) for name, lines in events.items()}}
    out.answer("matrix explain", document, lambda _, console: report.render_cells(found, events, console))


@command.command("retry")
@click.option("--class", "kinds", multiple=True, help="A class of failures, for example timeout; repeatable.")
@click.option("--workers", type=click.IntRange(min=1), help="Stages at a time. Default: the CPUs of this process.")
@scheduler_options
@limit_options
@output_options
@html_option
def retry(kinds: tuple[str, ...], out: Output, **where: Any) -> int:
    """Try again what failed in the last matrix; everything else stays as it is."""
    given = api.last_matrix()
    output, models, targets = given["output"], given.pop("models"), given.pop("targets")
    call = VerbCall("matrix", models, targets, **given, **where, retry=kinds or farm.CLASSES)
    return _run(call, None if output is None else Path(output), out)


@command.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@output_options
def export(file: Path, out: Output) -> None:
    """Write how the last matrix stands as a versioned JSON report."""
    found = mw.matrix_status()
    found.save(file)
    out.answer("matrix export", {"file": file, "cells": len(found)}, lambda _, console: console.print(f"wrote {file}"))


@command.command("schema")
def schema() -> None:
    """Print the JSON Schema of a list of models."""
    write_document(farm.list_schema())


def _run(call: VerbCall, output: Path | None, out: Output) -> int:
    def also(result: farm.MatrixResult) -> None:
        if output is not None:
            result.save(output / _REPORT)
            result.save_pages(output)
            out.note(f"wrote {output / _REPORT} and {output / _PAGE}")

    if output is not None and output.is_dir():
        check_output(output / _REPORT)
        check_output(output / _PAGE)
    return answer(call, out, Answering("matrix run", _code, also, kept_lines, _saved(output)))


def _saved(output: Path | None) -> str | None:
    if output is None:
        return None
    return f"result.save({str(output / _REPORT)!r})\nresult.save_pages({str(output)!r})"


def _code(found: farm.MatrixResult) -> int:
    return {True: 0, False: NO, None: CANNOT_TELL}[found.passed]


def _watched(out: Output) -> farm.MatrixResult:
    with report.watching(out.console(sys.stdout)) as show:
        while True:
            found = mw.matrix_status()
            show(found)
            if not found.open:
                return found
            time.sleep(_REFRESH_S)
