"""`wright inspect`."""

from __future__ import annotations

import click

from modelwright.cli._call import VerbCall, answer
from modelwright.cli._options import Output, component_option, dim_option, model_options, parse_dims, verb_options


@click.command("inspect")
@model_options
@click.argument("other", required=False, type=click.Path())
@component_option
@dim_option
@verb_options
def command(model: str, other: str | None, component: str | None, dims: tuple[str, ...], out: Output) -> int:
    """What is inside MODEL: I/O, operators, measured precision, what a run costs, external data, fingerprint.

    With OTHER: what the two do not share. Weights in external files are checked and hashed, never loaded. The
    fingerprint is the same for two files that hold the same graph and weights, whatever their layout and node names.
    What no runtime can use is refused (exit 3): cycles, values nobody makes, tensors that are not as large as they say.
    """
    return answer(VerbCall("inspect", model, other, component=component, dims=parse_dims(dims) or None), out)
