"""`wright compare`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from modelwright._lazy import lazy
from modelwright._output import check_output
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._measuring import input_options, told
from modelwright.cli._options import Output, html_option, limit_options, output_options, save_option
from modelwright.cli._signals import delivered
from modelwright.cli._streams import say
from modelwright.cli._types import Quantile, Share
from modelwright.errors import ExecutionError

if TYPE_CHECKING:
    from modelwright import measure
    from modelwright.report import compare as report
    from modelwright.report import status
else:
    measure = lazy("modelwright.measure")
    report = lazy("modelwright.report.compare")
    status = lazy("modelwright.report.status")

F = TypeVar("F", bound=Callable[..., Any])


def judge_options(function: F) -> F:
    """Adds what decides how arms are judged, and hands the command `CompareOptions`."""

    @click.option("--target", default="cpu", show_default=True, help="For arms that name none.")
    @click.option("--threads", type=int, help="For arms that name none (default: the CPUs this process may use).")
    @click.option("--budget", "budget_s", default=120.0, show_default=True, help="Seconds to spend at most.")
    @click.option(
        "--min-effect", type=Share(), default="2%", show_default=True, help="Smallest difference of interest."
    )
    @click.option("--alpha", default=0.05, show_default=True, help="Probability of any false claim, at most.")
    @click.option(
        "--by",
        type=Quantile(),
        multiple=True,
        default=("p10", "p50"),
        show_default=True,
        help="Quantile to judge by: p10 is the work itself, p50 the typical run, p99 the tail; repeatable.",
    )
    @click.option(
        "--max-slowdown",
        type=Share(),
        help="The gate: exit 1 when an arm is proven slower by more than this (3%), 6 when that is not decided.",
    )
    @click.option("--allow-different", is_flag=True, help="Measure arms that answer something else than the base too.")
    @click.option(
        "--retry",
        type=click.Path(path_type=Path),
        help="Go on with the units in this file, which --save of the same command wrote.",
    )
    @click.option("--measure-duplicates", is_flag=True, help="Time identical arms too: an A/A test of the machine.")
    @click.option("--no-wait", is_flag=True, help="Fail when another measurement runs, instead of waiting.")
    @functools.wraps(function)
    def wrapper(*args: Any, no_wait: bool, **kwargs: Any) -> Any:
        names = ["target", "threads", "budget_s", "min_effect", "alpha", "by"]
        names += ["max_slowdown", "allow_different", "retry", "measure_duplicates"]
        options = measure.CompareOptions(wait=not no_wait, **{name: kwargs.pop(name) for name in names})
        return function(*args, options=options, **kwargs)

    return wrapper  # type: ignore[return-value]


@click.command("compare")
@click.argument("arms", nargs=-1, type=click.Path(), metavar="BASE ARM...")
@click.option("-m", "--model", "named", multiple=True, type=click.Path(), help="BASE and ARM, said with an option.")
@judge_options
@input_options
@save_option
@limit_options
@output_options
@html_option
def command(
    arms: tuple[str, ...],
    named: tuple[str, ...],
    options: measure.CompareOptions,
    inputs: measure.InputChoice,
    save: Path | None,
    out: Output,
) -> None:
    """Which arm is faster than the first, with proof, or an honest "not decided".

    \b
    An arm is a model, with a name and settings of its own where needed:
      NAME=MODEL@target=T,threads=N,runtime=R,level=L,opt.KEY=V,config.KEY=V

    Units of fresh sessions are measured in random order until every arm is decided or the budget is spent. Looking at
    the result while it grows costs nothing: all claims together are wrong with probability --alpha at most.
    """
    check_output(save)
    asked = replace(options, inputs=inputs)
    try:
        with status.KeptLines(out.console(sys.stderr), out.note, quiet=out.quiet) as line:
            result = measure.compare((*named, *arms), asked, on_progress=line)
    except measure.ComparisonInterrupted as stop:
        _finish(stop.partial, save, out)
        raise
    except measure.ComparisonFailed as error:
        _finish(error.partial, save, out)
        raise told(error) from None
    _finish(result, save, out)
    if result.broken:
        arm = result.broken[0]
        problem = f"{arm.name} could not be measured"
        raise told(ExecutionError(problem, cause=str(arm.failure), fix="leave it out, or try it alone: wright perf"))
    if result.refused:
        _refuse(result.refused[0], result.base)
    if options.max_slowdown is not None:
        _gate(result, options.max_slowdown)


def _gate(result: measure.CompareResult, max_slowdown: float) -> None:
    if result.within is False:
        raise click.exceptions.Exit(NO)
    if result.within is None:
        open_arm = next(arm for arm in result.arms if arm.verdict is not None and arm.within is None)
        say(f"error: cannot tell whether {open_arm.name} is more than {100 * max_slowdown:g} % slower")
        say(f"  why: {open_arm.sentence}")
        say("  next: add units with --retry and the file of --save, or raise --budget")
        raise click.exceptions.Exit(CANNOT_TELL)


def _refuse(arm: measure.ArmResult, base: str) -> NoReturn:
    """Done, and the answer is no: how fast it is does not matter."""
    say(f"error: {arm.name} does not answer what {base} answers")
    say(f"  why: {arm.refused}")
    say("  next: wright debug finds where they part; --allow-different measures it all the same")
    raise click.exceptions.Exit(NO)


def _finish(result: measure.CompareResult, save: Path | None, out: Output) -> None:
    with delivered():
        if save is not None:
            result.save(save)
        out.draw(result)
        out.answer("compare", result, lambda _, console: report.render_compare(result, console))
