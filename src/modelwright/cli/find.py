"""`wright find`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelwright.cli._call import Answering, VerbCall, answer
from modelwright.cli._completing import target_names, task_names
from modelwright.cli._exits import NO
from modelwright.cli._options import Output, verb_options
from modelwright.cli._types import Size

if TYPE_CHECKING:
    from modelwright.overview import Found


@click.command("find")
@click.option("--task", required=True, shell_complete=task_names, help="What the model is for.")
@click.option("--target", default="cpu", show_default=True, shell_complete=target_names, help="EP and device.")
@click.option("--max-size", type=Size(), help="What the build may weigh, for example 50MB.")
@click.option("--min-level", help="What must be shown of it on the target, for example L2.")
@click.option("--hub/--no-hub", default=True, help="Also ask the Hub, where it can be reached.")
@click.option(
    "--recipes",
    "catalogue",
    type=click.Path(path_type=Path, file_okay=False),
    help="Another catalogue than the one that came with wright.",
)
@verb_options
def command(task: str, target: str, out: Output, **said: Any) -> int:
    """A shortlist of models for a task on a target, those that were shown most first.

    Level, accuracy, latency and placement come with the evidence that says so; the licence and the command that builds
    it stand beside them. Exit 1 when there is none: then the reasons are there.
    """
    return answer(VerbCall("find", task, target, **said), out, Answering(code=_code))


def _code(found: Found) -> int:
    return 0 if found.rows else NO
