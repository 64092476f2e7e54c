"""`wright advise`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from modelwright.cli._call import Answering, VerbCall, answer
from modelwright.cli._data import data_options
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._options import Output, html_option, model_options, target_options, verb_options
from modelwright.cli._types import Milliseconds, Size

if TYPE_CHECKING:
    from modelwright.answers import Decision
    from modelwright.targets import Target


@click.command("advise")
@model_options
@target_options
@click.option("--max-drop", help="What may be lost of the accuracy on labelled --data: 1pt, 1%, 0.01.")
@click.option("--latency", "latency_ms", type=Milliseconds(), help="What nine of ten runs may take, for example 20ms.")
@click.option("--memory", type=Size(), help="What the process may reach, for example 800MB.")
@click.option("--task", help="What the metric of --max-drop is of, as for `wright eval`.")
@click.option("--metric", help="file.py:function of (outputs, row), instead of the task's own.")
@click.option("--precision", "precisions", multiple=True, help="Offer only this; repeatable.")
@click.option("--threads", type=int, help="Intra-op threads (default: the CPUs this process may use).")
@click.option("--budget", "budget_s", default=40.0, show_default=True, help="Seconds for each race, at most.")
@click.option("--replay", metavar="RECORD", help="Decide again what an earlier record decided, and tell what changed.")
@data_options()
@verb_options
@html_option
def command(
    model: str, targets: tuple[Target, ...] | None, precisions: tuple[str, ...], out: Output, **said: Any
) -> int:
    """Which precision on which target MODEL should have, by what was asked and measured.

    A few builds are made, each is measured on its target and on labelled --data, and those that hold everything are
    raced, each against the best before it. Exit 1 when nothing holds what was asked; 6 when one that might be better
    is neither shown to be nor shown not to be.
    """
    call = VerbCall("advise", model, targets or "cpu", precisions=precisions or None, **said)
    return answer(call, out, Answering(code=_code))


def _code(found: Decision) -> int:
    if found.undecided:
        return CANNOT_TELL
    return NO if found.chosen is None else 0
