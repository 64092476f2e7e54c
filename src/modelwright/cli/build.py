"""`wright build`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelwright.cli._building import folder_options, run_build, words
from modelwright.cli._call import VerbCall, answer
from modelwright.cli._cluster import scheduler_options
from modelwright.cli._completing import pass_names, precision_names
from modelwright.cli._data import data_options, pixel_options
from modelwright.cli._options import (
    Output,
    dim_option,
    effort_option,
    ep_option,
    limit_options,
    parse_dims,
    source_options,
    target_options,
    verb_options,
)
from modelwright.errors import UsageError

if TYPE_CHECKING:
    from modelwright.targets import Target


@click.command("build")
@source_options
@target_options
@click.option("-r", "--recipe", type=click.Path(path_type=Path), help="Recipe file (TOML or JSON), whole or partial.")
@click.option(
    "--precision",
    shell_complete=precision_names,
    help="fp32, fp16, w8a8, w8a16, w4a16 … Default: what the target's policy says.",
)
@effort_option
@click.option(
    "--passes",
    shell_complete=pass_names,
    help="Optimizer passes or presets, separated by commas; `-NAME` goes without one. Default: portable.",
)
@click.option("--force", is_flag=True, help="Keep passes whose operators the target's EP does not claim.")
@dim_option
@click.option("--opset", type=int, help="The opset the model must have.")
@pixel_options
@data_options(partly=True)
@click.option("--compile/--no-compile", default=None, help="EPContext; default: when the target names a chip.")
@ep_option
@click.option(
    "--max-drop",
    help="What may be lost of the accuracy on labelled --data: 1pt, 1%, 0.01. Exit 1 when more is, 6 when undecided.",
)
@folder_options
@click.option(
    "--shared",
    is_flag=True,
    help="-o gets a folder for each target; large files that several have are there once (hard links).",
)
@scheduler_options
@click.option("--plan", is_flag=True, help="Say what would run and what is in the store; run nothing.")
@limit_options
@verb_options
def command(
    model: str, targets: tuple[Target, ...] | None, passes: str | None, dims: tuple[str, ...], plan: bool,
    max_drop: str | None, force: bool, output: Path | None, overwrite: bool, shared: bool,
    scheduler: str | None, tls: Path | None, about: dict[str, Any], out: Output, **said: Any,
) -> int:  # fmt: skip
    """Take a model to checked artifacts: export, optimize, quantize, validate, compile.

    Every stage is kept in the store under a key of what made it: a second build runs only what changed. With several
    targets, -o gets a folder for each. Without one it is what the recipe is for, else cpu. Exit 1 when a result is too
    far from the export (it is kept, and marked).
    """
    wanted = {**said, "passes": words(passes), "dims": parse_dims(dims) or None, **about}
    if plan and scheduler:
        raise UsageError("a plan asks no cluster", cause="--plan runs nothing", fix="leave --plan or --scheduler out")
    if plan:
        return answer(VerbCall("plan", model, targets, **wanted), out)
    where: dict[str, Any] = {"output": output, "overwrite": overwrite, "shared": shared}
    where |= {"scheduler": scheduler, "tls": tls if scheduler else None}
    call = VerbCall("build", model, targets, **wanted, max_drop=max_drop, force=force, **where)
    return run_build("build", call, out)
