"""`wright eval`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from modelwright._lazy import lazy
from modelwright.cli._call import Answering, VerbCall, answer
from modelwright.cli._cluster import on_options
from modelwright.cli._completing import files, target_names, task_names
from modelwright.cli._data import data_options
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._options import (
    Output,
    html_option,
    limit_options,
    model_options,
    parse_pairs,
    retry_option,
    target_option,
    verb_options,
)
from modelwright.cli._types import Finite
from modelwright.errors import ExecutionError

if TYPE_CHECKING:
    from modelwright import judge
    from modelwright.evaluation import EvalResult
else:
    judge = lazy("modelwright.judge")


@click.command("eval")
@model_options
@click.option(
    "--reference",
    required=True,
    type=click.Path(),
    help="What it must not fall behind: .onnx, build folder or Hugging Face.",
)
@data_options(required=True)
@click.option(
    "--task",
    shell_complete=task_names,
    help="How rows are scored, for example image-classification; a wrong word lists them all.",
)
@click.option(
    "--metric", shell_complete=files, help="Your own score instead of a task: file.py:function of (outputs, row)."
)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of the task. Repeatable.")
@click.option("--max-drop", help="Allowed loss: 1% of the reference, 0.01 in the metric's unit, or 1pt.")
@click.option("--span", type=Finite(), help="How much worse one sample's score can get, where the metric cannot know.")
@click.option("--outputs", is_flag=True, help="Compare raw outputs; needs no labels.")
@click.option("--min-cosine", type=Finite(), help="With --outputs: of the worst sample of every output.")
@click.option(
    "--min-sqnr", "min_sqnr_db", type=Finite(), help="With --outputs: dB, of the worst sample of every output."
)
@click.option(
    "--after", type=click.IntRange(0), default=0, help="So many rows went into MODEL's calibration, and are not judged."
)
@target_option
@click.option(
    "--reference-target",
    default="cpu",
    show_default=True,
    shell_complete=target_names,
    help="What the reference runs on.",
)
@retry_option
@on_options
@limit_options
@verb_options
@html_option
def command(model: str, reference: str, settings: tuple[str, ...], out: Output, **said: Any) -> int:
    """Is MODEL as accurate as its reference, on the same samples, in the same run?

    With --max-drop the answer is pass, fail or inconclusive, at 95 % confidence however often you look, and
    inconclusive says what would decide. Exit 0 only for pass, 1 for fail, 6 for inconclusive. Without it the numbers
    are shown and nothing is judged, except that NaN from MODEL always fails. A Hugging Face MODEL is built for the
    target first; a Hugging Face reference runs in PyTorch.
    """
    said["settings"] = parse_pairs("--set", settings) or None
    return answer(VerbCall("evaluate", model, reference, **said), out, Answering(code=_code))


def _code(result: EvalResult) -> int:
    if result.status == "crashed":
        return ExecutionError.exit_code
    if result.verdict is judge.VerdictKind.INCONCLUSIVE:
        return CANNOT_TELL
    return NO if result.verdict is judge.VerdictKind.FAIL else 0
