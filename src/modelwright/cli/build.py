"""`wright build`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelwright._lazy import lazy
from modelwright.cli._building import Delivery, buildable, folder_options, run_builds
from modelwright.cli._data import data_options
from modelwright.cli._options import (
    Output,
    dim_option,
    limit_options,
    output_options,
    parse_dims,
    source_options,
    target_options,
)

if TYPE_CHECKING:
    from modelwright import pipeline as building
    from modelwright import store as stores
    from modelwright.models import Source
    from modelwright.report import build as report
    from modelwright.targets import Target
else:
    building = lazy("modelwright.pipeline")
    stores = lazy("modelwright.store")
    report = lazy("modelwright.report.build")


@click.command("build")
@source_options
@target_options
@click.option("-r", "--recipe", type=click.Path(path_type=Path), help="Recipe file (TOML or JSON), whole or partial.")
@click.option("--precision", help="fp32, fp16, w8a8, w8a16, w4a16 … Default: what the target's policy says.")
@click.option("--passes", help="Optimizer passes or presets, separated by commas; `none` for none. Default: portable.")
@click.option("--force", is_flag=True, help="Keep passes whose operators the target's EP does not claim.")
@dim_option
@click.option("--opset", type=int, help="The opset the model must have.")
@data_options(partly=True)
@click.option(
    "--compile/--no-compile", "compiled", default=None, help="EPContext; default: when the target names a chip."
)
@folder_options
@click.option("--plan", "only_plan", is_flag=True, help="Say what would run and what is in the store; run nothing.")
@limit_options
@output_options
def command(source: Source, wanted: tuple[Target, ...], out: Output, **said: Any) -> int:
    """Take a model to checked artifacts: export, optimize, quantize, validate, compile.

    Every stage is kept in the store under a key of what made it: a second build runs only what changed. With several
    targets, -o gets a folder for each. Exit 1 when a result is too far from the export (it is kept, and marked).
    """
    model = buildable(source)
    layer = building.read_layer(said["recipe"]) if said["recipe"] else {}
    planning = said["only_plan"]
    jobs = [(model, building.resolve_recipe(model, one, _wishes(said), layer, planning=planning)) for one in wanted]
    if planning:
        with stores.Store() as store:
            plans = [(recipe.target, building.plan(model, recipe, store=store)) for model, recipe in jobs]
        answer = {"plans": [{"target": target, "stages": steps} for target, steps in plans]}
        out.answer("build", answer, lambda _, console: report.render_plans(plans, console))
        return 0
    return run_builds("build", jobs, Delivery(said["output"], said["overwrite"], said["force"]), out)


def _wishes(said: dict[str, Any]) -> Any:
    passes = said["passes"]
    return building.Wishes(
        precision=said["precision"],
        passes=None if passes is None else tuple(word.strip() for word in passes.split(",") if word.strip()),
        data=said["data"],
        samples=said["samples"],
        seed=said["seed"],
        compile=said["compiled"],
        opset=said["opset"],
        dims=parse_dims(said["dims"]),
    )
