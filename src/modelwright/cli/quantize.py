"""`wright quantize`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelwright.cli._building import folder_options, run_build, words
from modelwright.cli._call import VerbCall
from modelwright.cli._completing import precision_names
from modelwright.cli._data import data_options
from modelwright.cli._options import (
    Output,
    dim_option,
    effort_option,
    limit_options,
    model_options,
    parse_dims,
    target_option,
    verb_options,
)

if TYPE_CHECKING:
    from modelwright.vocabulary import Data


@click.command("quantize")
@model_options
@click.option(
    "-p",
    "--precision",
    required=True,
    shell_complete=precision_names,
    help="fp16, dynamic, w8a8, w8a16, w16a16, w4a16, int4, chains like w8a8+fp16.",
)
@effort_option
@data_options()
@click.option(
    "--method",
    type=click.Choice(["minmax", "mse", "percentile"]),
    help="How activation ranges are found: all values, the least squared error, or most of the values.",
)
@click.option("--per-channel/--per-tensor", default=None, help="A scale per output channel of weights, or one for all.")
@click.option("--symmetric", is_flag=True, default=None, help="Symmetric activations.")
@target_option
@dim_option
@click.option(
    "--reduce-range/--no-reduce-range",
    default=None,
    help="Weights that cannot saturate, or all 8 bits. Default: where a CPU of the target may; cpu:isa=vnni keeps 8.",
)
@click.option("--op-types", help="Operators to quantize, separated by commas; `all` for every one.")
@click.option("--exclude", multiple=True, help="A node to leave alone, by name. Repeatable.")
@click.option("--override", multiple=True, help="tensor=dtype, for example /conv1/out=uint16. Repeatable.")
@folder_options
@limit_options
@verb_options
def command(
    model: str, precision: str, effort: str | None, data: Data, target: str, dims: tuple[str, ...], output: Path | None,
    overwrite: bool, out: Output, **said: Any,
) -> int:  # fmt: skip
    """Quantize MODEL, measure the bits that came out, and compare it with the original.

    Fails when the measured bits are not what the precision says, and exits 1 when the result is too far off.
    """
    recipe = {"optimize": False, "compile": False, "quantize": _section(said)}
    where = {"dims": parse_dims(dims) or None, "output": output, "overwrite": overwrite}
    call = VerbCall("build", model, target, recipe=recipe, precision=precision, effort=effort, data=data, **where)
    return run_build("quantize", call, out)


def _section(said: dict[str, Any]) -> dict[str, Any]:
    """Only what was said: unset is not the same as the default."""
    section = {
        "method": said["method"],
        "per_channel": said["per_channel"],
        "symmetric_activations": said["symmetric"],
        "reduce_range": said["reduce_range"],
        "op_types": words(said["op_types"]),
        "nodes_to_exclude": said["exclude"] or None,
        "overrides": [dict(zip(("tensor", "dtype"), item.rsplit("=", 1), strict=False)) for item in said["override"]]
        or None,
    }
    return {key: value for key, value in section.items() if value is not None}
