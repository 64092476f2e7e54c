"""`wright export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from modelwright.cli._building import folder_options, run_build
from modelwright.cli._call import VerbCall
from modelwright.cli._options import Output, limit_options, source_options, verb_options

_ONLY = {"optimize": False, "quantize": False, "compile": False}


@click.command("export")
@source_options
@click.option("--opset", type=int, help="The opset the model must have.")
@folder_options
@limit_options
@verb_options
def command(
    model: str, about: dict[str, Any], opset: int | None, output: Path | None, overwrite: bool, out: Output
) -> int:
    """Hugging Face model to ONNX, checked against PyTorch on inputs it was not traced with.

    Strategies are tried in order, and the manifest says which one won and why the others did not.
    """
    recipe = {**_ONLY, "export": {}}
    call = VerbCall("build", model, recipe=recipe, opset=opset, **about, output=output, overwrite=overwrite)
    return run_build("export", call, out)
