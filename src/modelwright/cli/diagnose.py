"""`wright diagnose`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelwright.cli._call import Answering, VerbCall, answer
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._measuring import input_options
from modelwright.cli._options import (
    Output,
    component_option,
    ep_option,
    html_option,
    limit_options,
    optional_model,
    parse_pairs,
    target_option,
    verb_options,
)

if TYPE_CHECKING:
    from modelwright.answers import Diagnosis

_CODES = {True: 0, False: NO, None: CANNOT_TELL}


@click.command("diagnose")
@optional_model
@component_option
@target_option
@click.option("--symptom", type=click.Choice(["slow", "wrong", "fails", "memory"]), help="What is complained of.")
@click.option("--log", type=click.Path(path_type=Path), help="A log with error texts: each is looked up.")
@click.option("--reference", type=click.Path(), help="The float model that the answers should agree with.")
@click.option("--threads", type=int, help="Intra-op threads of the session that is complained of.")
@click.option(
    "--level",
    type=click.Choice(["disabled", "basic", "extended", "all"]),
    default="all",
    show_default=True,
    help="Graph optimization of that session.",
)
@click.option("--config", multiple=True, metavar="KEY=VALUE", help="Session config entry of it; repeatable.")
@ep_option
@click.option("--budget", "budget_s", default=40.0, show_default=True, help="Seconds for each race, at most.")
@click.option(
    "--reduce",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Cut the graph to the smallest model that still fails so, written to this file.",
)
@click.option(
    "--bug-report",
    "bug_report",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write a bug report with the smallest model to this folder.",
)
@input_options()
@limit_options
@verb_options
@html_option
def command(model: str | None, target: str, config: tuple[str, ...], out: Output, **said: Any) -> int:
    """What is wrong with MODEL on a target, why, and what cures it, tried.

    It is read, placed, run once and, with --reference, compared; rules name the cause; every cure is tried and shown
    with what it changed. What is slow is raced: where the machine decides nothing, the answer is "cannot tell".
    With --log: the error texts of onnxruntime, QNN, OpenVINO, DirectML, CUDA and TensorRT in a file, each with what it
    means, the next step and the public threads that it is known from. What is not in the catalogue is said to be
    unknown. Exit 1 when a cause was found, 6 when none is known for what is wrong or it cannot be told, 0 when nothing
    is wrong.
    """
    call = VerbCall("diagnose", model, target, config=parse_pairs("--config", config) or None, **said)
    return answer(call, out, Answering(code=_code))


def _code(found: Diagnosis) -> int:
    return _CODES[found.healthy]
