"""`wright optimize`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelwright._lazy import lazy
from modelwright.cli._building import folder_options, run_build, words
from modelwright.cli._call import VerbCall
from modelwright.cli._completing import pass_names
from modelwright.cli._options import (
    Output,
    dim_option,
    limit_options,
    optional_model,
    parse_dims,
    require_model,
    verb_options,
)

if TYPE_CHECKING:
    from modelwright import models
    from modelwright.report import passes as report
    from modelwright.stages import optimize as optimizing
else:
    models = lazy("modelwright.models")
    report = lazy("modelwright.report.passes")
    optimizing = lazy("modelwright.stages.optimize")

_ONLY = {"quantize": False, "compile": False}


@click.command("optimize")
@optional_model
@click.option(
    "--passes",
    default="portable",
    show_default=True,
    shell_complete=pass_names,
    help="Passes or presets, separated by commas; `-NAME` goes without one of a preset.",
)
@dim_option
@click.option("--opset", type=int, help="Convert to this opset.")
@click.option("--list", "listing", is_flag=True, help="List every pass and preset.")
@click.option("--check", is_flag=True, help="Run each pass alone and say which ones change MODEL.")
@folder_options
@limit_options
@verb_options
def command(
    model: str | None,
    passes: str,
    dims: tuple[str, ...],
    opset: int | None,
    listing: bool,
    check: bool,
    output: Path | None,
    overwrite: bool,
    out: Output,
) -> int:
    """Run named passes on MODEL and check that it still computes the same."""
    if listing or check:
        out.refuse_python("--list" if listing else "--check")
    if listing:
        table = {"passes": optimizing.passes(), "presets": optimizing.PRESETS}
        out.answer("optimize", table, report.render_table)
        return 0
    name = require_model(model)
    if check:
        effects = optimizing.try_passes(models.onnx_of(name))
        out.answer("optimize", {"effects": effects}, report.render_effects)
        return 0
    wanted = {"passes": words(passes), "opset": opset, "dims": parse_dims(dims) or None}
    call = VerbCall("build", name, recipe=_ONLY, **wanted, output=output, overwrite=overwrite)
    return run_build("optimize", call, out)
