"""`wright eval`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelwright._lazy import lazy
from modelwright._output import check_output
from modelwright.cli._data import data_options
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._options import (
    Output,
    html_option,
    limit_options,
    model_options,
    output_options,
    parse_pairs,
    save_option,
)
from modelwright.cli._signals import delivered
from modelwright.cli._types import Finite
from modelwright.errors import ExecutionError

if TYPE_CHECKING:
    from modelwright import evaluation, judge, measure
    from modelwright.judge import VerdictKind
    from modelwright.report import eval as report
    from modelwright.report import status
    from modelwright.vocabulary import Data
else:
    measure = lazy("modelwright.measure")
    evaluation = lazy("modelwright.evaluation")
    judge = lazy("modelwright.judge")
    report = lazy("modelwright.report.eval")
    status = lazy("modelwright.report.status")


@click.command("eval")
@model_options
@click.option("--reference", required=True, help="What it must not fall behind: .onnx, build folder or Hugging Face.")
@data_options(required=True)
@click.option("--task", help="How rows are scored, for example image-classification; a wrong word lists them all.")
@click.option("--metric", help="Your own score instead of a task: file.py:function of (outputs, row).")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of the task. Repeatable.")
@click.option("--max-drop", help="Allowed loss: 1% of the reference, 0.01 in the metric's unit, or 1pt.")
@click.option("--span", type=Finite(), help="How much worse one sample's score can get, where the metric cannot know.")
@click.option("--outputs", is_flag=True, help="Compare raw outputs; needs no labels.")
@click.option("--min-cosine", type=Finite(), help="With --outputs: of the worst sample of every output.")
@click.option("--min-sqnr", type=Finite(), help="With --outputs: dB, of the worst sample of every output.")
@click.option("--target", default="cpu", show_default=True, help="What the candidate runs on.")
@click.option("--reference-target", default="cpu", show_default=True, help="What the reference runs on.")
@save_option
@limit_options
@output_options
@html_option
def command(
    model: str,
    reference: str,
    data: Data,
    task: str | None,
    metric: str | None,
    settings: tuple[str, ...],
    max_drop: str | None,
    span: float | None,
    outputs: bool,
    min_cosine: float | None,
    min_sqnr: float | None,
    target: str,
    reference_target: str,
    save: Path | None,
    out: Output,
) -> int:
    """Is MODEL (.onnx or build folder) as accurate as its reference, on the same samples, in the same run?

    With --max-drop the answer is pass, fail or inconclusive, at 95 % confidence however often you look, and
    inconclusive says what would decide. Exit 0 only for pass, 1 for fail, 6 for inconclusive. Without it the numbers
    are shown and nothing is judged, except that NaN from it always fails.
    """
    options = evaluation.EvalOptions(
        metric=metric,
        settings=parse_pairs("--set", settings),
        max_drop=judge.parse_allowance(max_drop) if max_drop is not None else None,
        span=span,
        outputs=outputs,
        min_cosine=min_cosine,
        min_sqnr_db=min_sqnr,
        target=target,
        reference_target=reference_target,
    )
    check_output(save)
    try:
        with status.StatusLine(out.console(sys.stderr), quiet=out.quiet or out.json) as line:
            result = evaluation.evaluate(model, reference, data, task, options, on_progress=line)
    except evaluation.EvalInterrupted as stop:
        _finish(stop.partial, save, out)
        raise
    _finish(result, save, out)
    return ExecutionError.exit_code if result.status == "crashed" else _code(result.verdict)


def _code(verdict: VerdictKind | None) -> int:
    if verdict is judge.VerdictKind.INCONCLUSIVE:
        return CANNOT_TELL
    return NO if verdict is judge.VerdictKind.FAIL else 0


def _finish(result: evaluation.EvalResult, save: Path | None, out: Output) -> None:
    with delivered():
        if save is not None:
            result.save(save)
        out.draw(result)
        out.answer("eval", result, report.render_eval)
