"""`wright tune`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelwright._lazy import lazy
from modelwright.cli._building import written_folder_options
from modelwright.cli._call import Answering, VerbCall, answer, kept_lines
from modelwright.cli._completing import precision_names, task_names
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._measuring import input_options, wait_option
from modelwright.cli._options import (
    Output,
    html_option,
    limit_options,
    model_options,
    one_target,
    target_options,
    verb_options,
)
from modelwright.cli._types import Duration, Milliseconds, Quantile, Share, Size
from modelwright.errors import UsageError

if TYPE_CHECKING:
    from modelwright.report import knowledge as report
    from modelwright.search import TuneResult, TuneSweep
    from modelwright.targets import Target
else:
    report = lazy("modelwright.report.knowledge")


@click.command("tune")
@model_options
@target_options
@click.option("--budget", "budget_s", type=Duration("s"), default="10m", show_default=True, help="Time to spend.")
@click.option("-r", "--recipe", type=click.Path(path_type=Path), help="Recipe of the baseline, whole or partial.")
@click.option("--precision", shell_complete=precision_names, help="That of the baseline; default: the target's policy.")
@click.option(
    "--axis",
    "axes",
    multiple=True,
    type=click.Choice(["precision", "opset", "pass", "compile", "option", "threads", "level", "spinning", "denormals"]),
    help="What may be done otherwise; repeatable. Default: all of these.",
)
@click.option("--forbid", multiple=True, metavar="CHANGE", help="An axis, or one change such as level=basic.")
@click.option("--only", multiple=True, metavar="CHANGE", help="Try this change; repeatable. Default: all.")
@click.option(
    "--add", multiple=True, metavar="CHANGE", help="Try opt.KEY=VALUE of the EP or config.KEY=VALUE of the session too."
)
@click.option("--max-drop", help="What another precision may lose on labelled data: 1pt, 1%, 0.01.")
@click.option("--task", shell_complete=task_names, help="What the model is for; --max-drop is of its metric.")
@click.option(
    "--objective",
    type=click.Choice(["latency", "size", "memory"]),
    default="latency",
    show_default=True,
    help="What is made small. Latency by the quantiles of --by; memory is that of a process that opens and runs it.",
)
@click.option("--max-memory", type=Size(), help="What it may take, for example 800MB; exit 1 when it does not fit.")
@click.option(
    "--latency",
    "max_latency_ms",
    type=Milliseconds(),
    help="What a run may take, for example 20ms, by the slowest quantile of --by; exit 1 when it takes longer.",
)
@click.option("--min-effect", type=Share(), default="2%", show_default=True, help="Smallest difference of interest.")
@click.option("--alpha", default=0.05, show_default=True, help="Probability of a false champion, at most.")
@click.option(
    "--by",
    type=Quantile(),
    multiple=True,
    default=("p10", "p50"),
    show_default=True,
    help="Quantile to judge by; the first one screens. Repeatable.",
)
@click.option("--threads", type=int, help="Of the baseline (default: the CPUs this process may use).")
@click.option("--explain", is_flag=True, help="Show for each change why it is tried first, last or not at all.")
@click.option("--again", is_flag=True, help="Measure anew what an earlier search of the same has measured.")
@written_folder_options
@wait_option
@input_options
@limit_options
@verb_options
@html_option
def command(
    model: str, targets: tuple[Target, ...] | None, output: Path | None, explain: bool, out: Output, **said: Any
) -> int:
    """Find the configuration of MODEL that is really best on a target, and prove it on a fresh build.

    The baseline is what `wright build` makes. Each change of it (a pass, an opset, a precision, a session setting) is
    built; what is the same graph, fails its gate, answers otherwise or leaves more nodes to the CPU is out before
    anything is timed. The rest takes turns with the baseline, what wins is tried together, and the best is built anew
    and judged on fresh units alone. Where nothing is proven to be faster, the baseline stays.

    Another precision takes part only with real --data. A target that is only simulated here is tuned for placement and
    size. The same command goes on after a kill.

    With several targets each is tuned, and the answer says what to take for all of them: one recipe by its worst case,
    one each, or a front; where each champion can go, and what runs when an EP is missing.
    """
    if targets is not None and len(targets) > 1:
        return _for_all([model], targets, output, out, said)
    call = VerbCall("tune", model, one_target(targets), output=output, **said)
    also = (lambda result: report.render_insights(result.insights, out.console(sys.stdout))) if explain else _nothing
    return answer(call, out, Answering(code=_code, progress=kept_lines, also=_nothing if out.json else also))


def _for_all(
    models: list[str], targets: tuple[Target, ...], output: Path | None, out: Output, said: dict[str, Any]
) -> int:
    if output is not None:
        raise UsageError(
            "-o takes one champion", cause="here are several searches", fix="tune each target alone with its own -o"
        )
    asked = {name: value for name, value in said.items() if name != "overwrite"}
    call = VerbCall("sweep", models, [str(target) for target in targets], **asked)
    return answer(call, out, Answering(code=_all_code, progress=kept_lines))


def _all_code(found: TuneSweep) -> int:
    """No where one says no, cannot tell where one has no answer."""
    codes = [CANNOT_TELL if row.result is None else _code(row.result) for row in found.rows]
    return NO if NO in codes else max(codes, default=0)


def _code(found: TuneResult) -> int:
    if found.fits is False or (found.latency is not None and found.latency.kept is False):
        return NO
    return CANNOT_TELL if found.latency is not None and found.latency.kept is None else 0


def _nothing(result: object) -> None:
    """The insights are in the document already."""
