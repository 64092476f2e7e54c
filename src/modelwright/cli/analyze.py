"""`wright analyze`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from modelwright.cli._call import Answering, VerbCall, answer
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._options import (
    Output,
    component_option,
    html_option,
    limit_options,
    model_options,
    target_options,
    verb_options,
)
from modelwright.cli._types import Share

if TYPE_CHECKING:
    from modelwright.pipeline import Analyses
    from modelwright.targets import Target

_CODES = {True: 0, False: NO, None: CANNOT_TELL}


@click.command("analyze")
@model_options
@component_option
@target_options
@click.option("--suggest/--no-suggest", default=True, help="Try changes that could move more nodes to the target.")
@click.option(
    "--max-fallback",
    type=Share(),
    help="The gate: how much may be left to other EPs (2%). Default: nothing that the target should take.",
)
@limit_options
@verb_options
@html_option
def command(model: str, component: str | None, targets: tuple[Target, ...] | None, out: Output, **said: Any) -> int:
    """Which nodes of MODEL each target really takes: its own partitioner is asked.

    Every suggestion was tried and its effect on the placement measured. Where no such EP can be asked on this machine
    it says so; it never guesses. Exit 1 when nodes remain that a target cannot take (more than --max-fallback of them,
    where it is given), 6 when one could not be asked.
    MODEL is an .onnx file, a build folder, or a Hugging Face model, which is built for the target first.
    """
    call = VerbCall("analyze", model, targets or "cpu", component=component, **said)
    return answer(call, out, Answering(code=_code))


def _code(found: Analyses) -> int:
    return _CODES[found.accepted]
