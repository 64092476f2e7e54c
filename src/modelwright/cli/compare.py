"""`wright compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import click

from modelwright.cli._call import Answering, VerbCall, answer, kept_lines, told
from modelwright.cli._cluster import on_options
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._measuring import input_options, wait_option
from modelwright.cli._options import Output, html_option, limit_options, retry_option, target_option, verb_options
from modelwright.cli._streams import say
from modelwright.cli._types import Quantile, Share
from modelwright.errors import ExecutionError

if TYPE_CHECKING:
    from modelwright.measure import ArmResult, CompareResult


@click.command("compare")
@click.argument("arms", nargs=-1, type=click.Path(), metavar="BASE ARM...")
@click.option("-m", "--model", "named", multiple=True, type=click.Path(), help="BASE and ARM, said with an option.")
@target_option
@click.option("--threads", type=int, help="For arms that name none (default: the CPUs this process may use).")
@click.option("--budget", "budget_s", default=120.0, show_default=True, help="Seconds to spend at most.")
@click.option("--min-effect", type=Share(), default="2%", show_default=True, help="Smallest difference of interest.")
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
    "--operators/--no-operators",
    default=True,
    show_default=True,
    help="Trace a float BASE and each quantized ARM too, for the operators that are slower.",
)
@retry_option
@click.option("--against", metavar="RECORD", help="Put the times beside those of an earlier perf or compare.")
@click.option("--measure-duplicates", is_flag=True, help="Time identical arms too: an A/A test of the machine.")
@wait_option
@input_options()
@on_options
@limit_options
@verb_options
@html_option
def command(
    arms: tuple[str, ...], named: tuple[str, ...], against: str | None, out: Output, **said: Any
) -> int:  # fmt: skip
    """Which arm is faster than the first, with proof, or an honest "not decided".

    \b
    An arm is a model, with a name and settings of its own where needed:
      NAME=MODEL@target=T,threads=N,runtime=R,level=L,opt.KEY=V,config.KEY=V

    Units of fresh sessions are measured in random order until every arm is decided or the budget is spent. Looking at
    the result while it grows costs nothing: all claims together are wrong with probability --alpha at most.

    With --against the times of now stand beside those of an earlier record: what differs is said, and nothing is proven
    by it, so one arm alone with a gate exits 6. RECORD is a file of --save or the beginning of an id.
    """
    every = (*named, *arms)
    alone = len(every) == 1 and against is not None
    how = Answering(code=_alone if alone else _code, progress=kept_lines)
    return answer(VerbCall("compare", every, **said, against=against), out, how)


def _alone(result: CompareResult) -> int:
    """There is nothing to hold it against but another time."""
    if result.options.max_slowdown is None or result.against is None:
        return 0
    say(f"error: cannot tell whether {result.base} is more than {100 * result.options.max_slowdown:g} % slower")
    say(f"  why: {result.against.says[0]}")
    say(f"  next: {result.against.next}")
    return CANNOT_TELL


def _code(result: CompareResult) -> int:
    if result.broken:
        arm = result.broken[0]
        problem = f"{arm.name} could not be measured"
        raise told(ExecutionError(problem, cause=str(arm.failure), fix="leave it out, or try it alone: wright perf"))
    if result.refused:
        _refuse(result.refused[0], result.base)
    limit = result.options.max_slowdown
    return 0 if limit is None else _gate(result, limit)


def _gate(result: CompareResult, max_slowdown: float) -> int:
    if result.within is None:
        open_arm = next(arm for arm in result.arms if arm.verdict is not None and arm.within is None)
        say(f"error: cannot tell whether {open_arm.name} is more than {100 * max_slowdown:g} % slower")
        say(f"  why: {open_arm.sentence}")
        say("  next: add units with --retry and the file of --save, or raise --budget")
        return CANNOT_TELL
    return 0 if result.within else NO


def _refuse(arm: ArmResult, base: str) -> NoReturn:
    """Done, and the answer is no: how fast it is does not matter. Or nobody can tell."""
    if arm.outputs is not None and arm.outputs.nothing:
        say(f"error: cannot tell whether {arm.name} answers what {base} answers")
        say(f"  why: {arm.refused}")
        say("  next: give real samples in which there is something; --allow-different measures it all the same")
        raise click.exceptions.Exit(CANNOT_TELL)
    say(f"error: {arm.name} does not answer what {base} answers")
    say(f"  why: {arm.refused}")
    say("  next: wright debug finds where they part; --allow-different measures it all the same")
    raise click.exceptions.Exit(NO)
