"""`wright inspect`."""

from __future__ import annotations

import click

from modelwright.cli._call import VerbCall, answer
from modelwright.cli._options import Output, component_option, model_options, verb_options


@click.command("inspect")
@model_options
@component_option
@verb_options
def command(model: str, component: str | None, out: Output) -> int:
    """What is inside MODEL: I/O, operators, measured precision, external data, fingerprint.

    Weights in external files are checked and hashed, never loaded. The fingerprint is the same for two files that hold
    the same graph and weights, whatever their layout and node names. What no runtime can use is refused (exit 3):
    cycles, values nobody makes, tensors that are not as large as they say.
    """
    return answer(VerbCall("inspect", model, component=component), out)
