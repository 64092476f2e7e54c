"""`wright compile`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelwright._lazy import lazy
from modelwright.cli._building import Delivery, folder_options, only, run_builds
from modelwright.cli._options import Output, limit_options, model_options, output_options, target_options

if TYPE_CHECKING:
    from modelwright import models
    from modelwright import pipeline as building
    from modelwright.targets import Target
else:
    building = lazy("modelwright.pipeline")
    models = lazy("modelwright.models")


@click.command("compile")
@model_options
@target_options
@click.option("--embed", is_flag=True, help="Put the compiled binary into the .onnx file.")
@folder_options
@limit_options
@output_options
def command(
    model: str, wanted: tuple[Target, ...], embed: bool, output: Path | None, overwrite: bool, out: Output
) -> int:
    """Compile MODEL (.onnx), as it is, to an EPContext model; the result is loaded and run before it counts."""
    source = models.OnnxSource(str(Path(model).absolute()))
    layer = {"optimize": False, "quantize": False}
    recipe = building.resolve_recipe(source, only(wanted), building.Wishes(compile=True), layer)
    if embed and recipe.compile is not None:
        section = {**recipe.model_dump(mode="json"), "compile": {"target": recipe.target, "embed": True}}
        recipe = building.make_recipe(section, "the command line")
    return run_builds("compile", [(source, recipe)], Delivery(output, overwrite), out)
