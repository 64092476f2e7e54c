"""`wright optimize`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelwright._lazy import lazy
from modelwright._scratch import scratch
from modelwright.cli._building import Delivery, folder_options, run_builds
from modelwright.cli._options import Output, dim_option, limit_options, optional_model, output_options, parse_dims
from modelwright.errors import UsageError

if TYPE_CHECKING:
    from modelwright import graph, models, targets, worker
    from modelwright import pipeline as building
    from modelwright.report import passes as report
    from modelwright.stages import optimize as optimizing
else:
    building = lazy("modelwright.pipeline")
    graph = lazy("modelwright.graph")
    models = lazy("modelwright.models")
    targets = lazy("modelwright.targets")
    worker = lazy("modelwright.worker")
    report = lazy("modelwright.report.passes")
    optimizing = lazy("modelwright.stages.optimize")

_CHECK_S = 3600.0


@click.command("optimize")
@optional_model
@click.option("--passes", default="portable", show_default=True, help="Passes or presets, separated by commas.")
@dim_option
@click.option("--opset", type=int, help="Convert to this opset.")
@click.option("--list", "listing", is_flag=True, help="List every pass and preset.")
@click.option("--check", is_flag=True, help="Run each pass alone and say which ones change MODEL.")
@folder_options
@limit_options
@output_options
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
    """Run named passes on MODEL (.onnx) and check that it still computes the same."""
    if listing:
        table = {"passes": optimizing.passes(), "presets": optimizing.PRESETS}
        out.answer("optimize", table, report.render_table)
        return 0
    if model is None:
        raise UsageError("no model was given", cause="only --list works without one", fix="wright optimize MODEL.onnx")
    names = tuple(word.strip() for word in passes.split(",") if word.strip())
    if check:
        return _check(Path(model), out)
    source = models.OnnxSource(str(Path(model).absolute()))
    wishes = building.Wishes(passes=names, opset=opset, dims=parse_dims(dims))
    layer = {"quantize": False, "compile": False}
    recipe = building.resolve_recipe(source, targets.parse_target("cpu"), wishes, layer)
    return run_builds("optimize", [(source, recipe)], Delivery(output, overwrite), out)


def _check(model: Path, out: Output) -> int:
    with scratch("check") as folder:
        names = tuple(item.name for item in optimizing.passes())
        task = optimizing.check_passes.call(str(model.absolute()), str(folder), names)
        effects = worker.run(task, timeout=_CHECK_S, size=graph.model_bytes(model)).unwrap()
    out.answer("optimize", {"effects": effects}, report.render_effects)
    return 0
