"""`wright tune`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelwright._lazy import lazy
from modelwright.cli._building import written_folder_options
from modelwright.cli._call import Answering, VerbCall, answer, kept_lines, told
from modelwright.cli._cluster import on_options
from modelwright.cli._completing import precision_names, task_names
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._measuring import input_options, wait_option
from modelwright.cli._options import (
    Output,
    html_option,
    limit_options,
    one_target,
    optional_model,
    require_model,
    target_options,
    verb_options,
)
from modelwright.cli._types import Duration, Milliseconds, Quantile, Share, Size
from modelwright.errors import UsageError, WrightError

if TYPE_CHECKING:
    from modelwright import search
    from modelwright.report import knowledge as report
    from modelwright.search import TuneResult, TuneSweep
    from modelwright.targets import Target
    from modelwright.vocabulary import On
else:
    report = lazy("modelwright.report.knowledge")
    search = lazy("modelwright.search")


@click.command("tune")
@optional_model
@click.option(
    "--catalog",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Instead of MODEL: a list of models, as `wright matrix` takes it. What has an answer is not run again.",
)
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
    type=click.Choice(["latency", "size", "memory", "energy"]),
    default="latency",
    show_default=True,
    help="What is made small. Latency by the quantiles of --by; memory is that of a process that opens and runs it; "
    "energy is what the CPU takes for a run, where the system tells.",
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
@input_options(partly=True)
@on_options
@limit_options
@verb_options
@html_option
def command(
    model: str | None,
    catalog: Path | None,
    targets: tuple[Target, ...] | None,
    output: Path | None,
    explain: bool,
    on: On | None,
    out: Output,
    **said: Any,
) -> int:
    """Find the configuration of MODEL that is really best on a target, and prove it on a fresh build.

    The baseline is what `wright build` makes. Each change of it (a pass, an opset, a precision, a session setting) is
    built; what is the same graph, fails its gate, answers otherwise or leaves more nodes to the CPU is out before
    anything is timed. The rest takes turns with the baseline, what wins is tried together, and the best is built anew
    and judged on fresh units alone. Where nothing is proven to be faster, the baseline stays.

    Another precision takes part only with real --data. A target that is only simulated here is tuned for placement and
    size. The same command goes on after a kill.

    With several targets each is tuned, and the answer says what to take for all of them: one recipe by its worst case,
    one each, or a front; where each champion can go, and what runs when an EP is missing. With --catalog every model of
    a list is; one that fails does not stop the others. --budget is for each search, and -o gets a folder for each.
    """
    if model is not None and catalog is not None:
        raise UsageError(
            "the models are said twice", cause=f"{model}, and those of {catalog}", fix="leave one of them out"
        )
    if catalog is not None or (targets is not None and len(targets) > 1):
        if on is not None:
            raise UsageError("--on is for one model and one target", cause="several are asked for", fix="name one each")
        names = None if targets is None else [str(target) for target in targets]
        call = VerbCall("sweep", catalog or [require_model(model)], names, output=output, **said)
    else:
        call = VerbCall("tune", require_model(model), one_target(targets), output=output, on=on, **said)
    shown = (lambda result: _insights(result, out)) if explain and not out.json else _nothing
    return answer(call, out, Answering(code=_code, also=shown, progress=kept_lines))


def _insights(result: TuneResult | TuneSweep, out: Output) -> None:
    console = out.console(sys.stdout)
    if not isinstance(result, search.TuneSweep):
        report.render_insights(result.insights, console)
        return
    for row in result.rows:
        if row.result is not None:
            console.print(f"{row.name} for {row.target}", markup=False, highlight=False)
            report.render_insights(row.result.insights, console)


def _code(found: TuneResult | TuneSweep) -> int:
    return _all_code(found) if isinstance(found, search.TuneSweep) else _one_code(found)


def _all_code(found: TuneSweep) -> int:
    """Those without an answer are complained about now, and the first of them decides; else no where one says no."""
    failed = [(row, row.failure) for row in found.rows if row.failure is not None]
    for row, why in failed:
        told(WrightError(f"{row.name} for {row.target}: {why.problem}", cause=why.cause, fix=why.fix))
    if failed:
        return failed[0][1].exit_code
    codes = [_one_code(row.result) for row in found.rows if row.result is not None]
    return NO if NO in codes else max(codes, default=0)


def _one_code(found: TuneResult) -> int:
    if found.fits is False or (found.latency is not None and found.latency.kept is False):
        return NO
    return CANNOT_TELL if found.latency is not None and found.latency.kept is None else 0


def _nothing(result: object) -> None:
    """The insights are in the document already."""
