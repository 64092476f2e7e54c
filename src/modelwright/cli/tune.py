"""`wright tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from modelwright.cli._building import written_folder_options
from modelwright.cli._call import Answering, VerbCall, answer, kept_lines
from modelwright.cli._completing import precision_names
from modelwright.cli._measuring import input_options, wait_option
from modelwright.cli._options import Output, html_option, limit_options, model_options, target_option, verb_options
from modelwright.cli._types import Duration, Quantile, Share


@click.command("tune")
@model_options
@target_option
@click.option("--budget", "budget_s", type=Duration("s"), default="10m", show_default=True, help="Time to spend.")
@click.option("--precision", shell_complete=precision_names, help="That of the baseline; default: the target's policy.")
@click.option(
    "--axis",
    "axes",
    multiple=True,
    type=click.Choice(["precision", "opset", "pass", "threads", "level", "spinning", "denormals"]),
    help="What may be done otherwise; repeatable. Default: all of these.",
)
@click.option("--forbid", multiple=True, metavar="CHANGE", help="An axis, or one change such as level=basic.")
@click.option("--max-drop", help="What another precision may lose on labelled data: 1pt, 1%, 0.01.")
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
@click.option("--again", is_flag=True, help="Measure anew what an earlier search of the same has measured.")
@written_folder_options
@wait_option
@input_options
@limit_options
@verb_options
@html_option
def command(model: str, target: str, output: Path | None, out: Output, **said: Any) -> int:
    """Find the configuration of MODEL that is really best on a target, and prove it on a fresh build.

    The baseline is what `wright build` makes. Each change of it (a pass, an opset, a precision, a session setting) is
    built; what is the same graph, fails its gate, answers otherwise or leaves more nodes to the CPU is out before
    anything is timed. The rest takes turns with the baseline, what wins is tried together, and the best is built anew
    and judged on fresh units alone. Where nothing is proven to be faster, the baseline stays.

    Another precision takes part only with real --data. A target that is only simulated here is tuned for placement and
    size. The same command goes on after a kill.
    """
    call = VerbCall("tune", model, target, output=output, **said)
    return answer(call, out, Answering(progress=kept_lines))
