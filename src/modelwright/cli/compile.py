"""`wright compile`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelwright.cli._building import folder_options, run_build
from modelwright.cli._call import VerbCall
from modelwright.cli._data import data_options
from modelwright.cli._options import (
    Output,
    dim_option,
    ep_option,
    limit_options,
    model_options,
    parse_dims,
    target_option,
    verb_options,
)

if TYPE_CHECKING:
    from modelwright.vocabulary import Data


@click.command("compile")
@model_options
@target_option
@dim_option
@ep_option
@data_options()
@click.option("--embed", is_flag=True, help="Put the compiled binary into the .onnx file.")
@folder_options
@limit_options
@verb_options
def command(
    model: str, target: str, dims: tuple[str, ...], provider_options: dict[str, str] | None, data: Data, embed: bool,
    output: Path | None, overwrite: bool, out: Output,
) -> int:  # fmt: skip
    """Compile MODEL, as it is, to an EPContext model; the target opens it and computes what the CPU computes.

    Give real samples (--data): of made-up ones an NPU's rounding may make much, and then nobody knows.
    """
    recipe: dict[str, Any] = {"optimize": False, "quantize": False}
    if embed:
        recipe["compile"] = {"embed": True}
    where = {"dims": parse_dims(dims) or None, "output": output, "overwrite": overwrite}
    said = {"data": data, "provider_options": provider_options}
    call = VerbCall("build", model, target, recipe=recipe, compile=True, **said, **where)
    return run_build("compile", call, out)
