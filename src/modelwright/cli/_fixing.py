"""`wright debug --fix`: its options, the recipe it starts from, and the build it ends with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from modelwright._lazy import lazy
from modelwright._output import write_output
from modelwright.cli._building import folder_options
from modelwright.cli._types import Finite
from modelwright.errors import UsageError
from modelwright.vocabulary import Data

if TYPE_CHECKING:
    from modelwright import graph as graphs
    from modelwright import models, repairs
    from modelwright import pipeline as building
    from modelwright import store as stores
    from modelwright.models import OnnxSource
    from modelwright.pipeline import Recipe
    from modelwright.repairs import FixOptions, FixResult
    from modelwright.store import Store
    from modelwright.targets import Target
    from modelwright.vocabulary import OnProgress
else:
    building = lazy("modelwright.pipeline")
    graphs = lazy("modelwright.graph")
    repairs = lazy("modelwright.repairs")
    models = lazy("modelwright.models")
    stores = lazy("modelwright.store")

F = TypeVar("F", bound=Callable[..., Any])
_NEEDS_FIX = ("target_sqnr", "target_drop", "metric", "precision", "calibrated_on", "save_recipe", "output")


@dataclass(frozen=True)
class Repair:
    """What was said about --fix."""

    target_sqnr: float | None
    target_drop: str | None
    metric: str | None
    raise_to: Any
    precision: str | None
    calibrated_on: str | None
    save_recipe: Path | None
    output: Path | None
    overwrite: bool


@dataclass(frozen=True)
class Repaired:
    """What --fix found, and where the build was written."""

    result: FixResult
    folder: Path | None


def fix_options(function: F) -> F:
    """Adds --fix and what belongs to it; hands the command a `Repair` or None."""

    @click.option("--fix", is_flag=True, help="Find the fewest nodes to raise to 16 bits or float, and build that.")
    @click.option("--target-sqnr", type=Finite(), help="--fix until every output has this SQNR, in dB.")
    @click.option("--target-drop", help="--fix until the metric loses no more: 1% of float's, 0.01 or 1pt.")
    @click.option("--metric", help="For --target-drop: file.py:function of (outputs, row). Default: top-1 of `label`.")
    @click.option(
        "--raise",
        "raise_to",
        type=click.Choice(["auto", "16bit", "float"]),
        default="auto",
        show_default=True,
        help="What --fix raises nodes to; auto tries what suits the target.",
    )
    @click.option("--precision", help="For --fix without a build folder: what the quantized model is.")
    @click.option("--calibrated-on", help="For --fix: the data of the quantized model, or where a build's data is now.")
    @click.option("--save-recipe", type=click.Path(path_type=Path, dir_okay=False), help="Write --fix's recipe (TOML).")
    @folder_options
    @functools.wraps(function)
    def wrapper(*args: Any, fix: bool, **kwargs: Any) -> Any:
        repair = Repair(**{name: kwargs.pop(name) for name in Repair.__dataclass_fields__})
        said = [name for name in _NEEDS_FIX if getattr(repair, name) is not None]
        if said and not fix:
            raise UsageError(
                f"--{said[0].replace('_', '-')} needs --fix",
                cause="it says how to repair",
                fix="add --fix, or leave it out",
            )
        return function(*args, repair=repair if fix else None, **kwargs)

    return wrapper  # type: ignore[return-value]


def run_fix(
    models: tuple[Path, Path | None], repair: Repair, options: FixOptions, target: Target, tell: OnProgress
) -> Repaired:
    """Search, then build what was found through the normal pipeline."""
    float_model, quant_model = models
    if quant_model is None:
        raise UsageError(
            "--fix needs --reference", cause="it repairs a quantized model", fix="give the float model it was made from"
        )
    recipe = _recipe((float_model, quant_model), repair, options.data, target)
    if recipe.quantize is None:
        raise UsageError(
            "that build is not quantized", cause="its recipe has no quantize stage", fix="give the quantized build"
        )
    with stores.Store() as store:
        building.check_folder(_source(float_model), repair.output, store=store, overwrite=repair.overwrite)
        result = repairs.fix(float_model, recipe, options, store=store, on_progress=tell)
        if not result.met:
            return Repaired(result, None)
        return Repaired(result, _deliver(float_model, _repaired(recipe, result), repair, store))


def _repaired(recipe: Recipe, result: FixResult) -> Recipe:
    reasons = recipe.reasons
    if any(item.what == "range" for item in result.raised):
        reasons = building.Reasons(reduce_range="the repair chose it: 8-bit products saturated")
    return recipe.model_copy(update={"quantize": result.quantize, "reasons": reasons})


def _recipe(pair: tuple[Path, Path], repair: Repair, data: Data, target: Target) -> Recipe:
    """How the quantized model was made: its build folder says so, else the command line and the model itself."""
    float_model, quant_model = pair
    if (quant_model / models.MANIFEST).is_file():
        return _recorded(quant_model, repair.calibrated_on)
    facts = graphs.summary(graphs.load(quant_model)).precision
    seen = replace(data, samples=None) if repair.calibrated_on is None else Data(repair.calibrated_on)
    wishes = building.Wishes(precision=repair.precision or facts.label, data=seen)
    layer = {
        "optimize": False,
        "compile": False,
        "quantize": {
            "per_channel": any(word.startswith("per-axis") for word in facts.granularity),
            "reduce_range": repairs.keeps_to_7_bits(quant_model),
        },
    }
    return building.resolve_recipe(_source(float_model), target, wishes, layer)


def _recorded(build: Path, calibrated_on: str | None) -> Recipe:
    """The recipe of a build. Its data is named without the place where it was."""
    made = building.make_recipe(dict(models.read_build(build).recipe), str(build / models.MANIFEST))
    if calibrated_on is not None:
        return made.model_copy(update={"data": replace(made.data, source=calibrated_on)})
    name = made.data.source.rpartition(":")[0] if made.data.function else made.data.source
    if not made.data.random and not Path(name).exists():
        raise UsageError(
            f"the data that {build.name} was calibrated with is not here",
            cause=f"there is no {name} in this folder",
            fix="say where it is with --calibrated-on",
        )
    return made


def _source(float_model: Path) -> OnnxSource:
    return models.OnnxSource(str(float_model.absolute()))


def _deliver(float_model: Path, recipe: Recipe, repair: Repair, store: Store) -> Path | None:
    if repair.save_recipe is not None:
        write_output(repair.save_recipe, building.recipe_file(recipe))
    if repair.output is None:
        return None
    result = building.build(_source(float_model), recipe, store=store)
    return building.deliver(result, repair.output, store=store, overwrite=repair.overwrite)
