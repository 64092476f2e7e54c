"""`wright export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelwright._lazy import lazy
from modelwright.cli._building import Delivery, buildable, folder_options, run_builds
from modelwright.cli._options import Output, limit_options, output_options, source_options
from modelwright.errors import UsageError

if TYPE_CHECKING:
    from modelwright import pipeline as building
    from modelwright import targets
    from modelwright.models import Source
else:
    building = lazy("modelwright.pipeline")
    targets = lazy("modelwright.targets")


@click.command("export")
@source_options
@click.option("--opset", type=int, help="The opset the model must have.")
@folder_options
@limit_options
@output_options
def command(source: Source, opset: int | None, output: Path | None, overwrite: bool, out: Output) -> int:
    """Hugging Face model to ONNX, checked against PyTorch on inputs it was not traced with.

    Strategies are tried in order, and the manifest says which one won and why the others did not.
    """
    model = buildable(source)
    if not hasattr(model, "architecture"):
        raise UsageError(
            "an .onnx file is already exported", cause="export is for Hugging Face models", fix="wright build"
        )
    layer = {"optimize": False, "quantize": False, "compile": False}
    recipe = building.resolve_recipe(model, targets.parse_target("cpu"), building.Wishes(opset=opset), layer)
    return run_builds("export", [(model, recipe)], Delivery(output, overwrite), out)
