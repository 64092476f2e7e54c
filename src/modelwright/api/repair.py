"""`modelwright.repair`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from modelwright import graph, models, pipeline, repairs
from modelwright._output import check_output, write_output
from modelwright.api._kept import kept, verb
from modelwright.api._opened import opened
from modelwright.errors import UsageError
from modelwright.judge import Allowance, as_allowance
from modelwright.models import OnnxSource
from modelwright.pipeline import Recipe
from modelwright.repairs import FixResult, Repaired
from modelwright.store import Store
from modelwright.targets import Target, parse_target
from modelwright.vocabulary import Data, OnProgress, as_data


@verb
def repair(
    model: str | Path,
    reference: str | Path,
    *,
    data: Data | str | None = None,
    target: str | Target = "cpu",
    target_sqnr: float | None = None,
    target_drop: str | float | Allowance | None = None,
    metric: str | None = None,
    raise_to: Literal["auto", "16bit", "float"] = "auto",
    budget_s: float | None = None,
    precision: str | None = None,
    calibrated_on: str | None = None,
    output: str | Path | None = None,
    overwrite: bool = False,
    save_recipe: str | Path | None = None,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> Repaired:
    """The cheapest change of a quantized model that makes it as good as asked: better settings, then more bits.

    `model` is the quantized model or its build folder, `reference` the float model it was made from. Half of the
    samples choose, the other half check. With `output`, what was found is built there. `budget_s` ends the search with
    the best so far. Raises FixInterrupted, with what
    was tried as `partial`, when it ends early; the same call goes on from there.
    """
    said, chosen, place = as_data(data), parse_target(target), Path(output) if output is not None else None
    float_model, recipe_file = models.onnx_of(reference), Path(save_recipe) if save_recipe is not None else None
    check_output(recipe_file)
    recipe = _recipe((float_model, Path(model)), precision, calibrated_on, said, chosen)
    if recipe.quantize is None:
        raise UsageError(
            "that build is not quantized", cause="its recipe has no quantize stage", fix="give the quantized build"
        )
    options = repairs.FixOptions(
        data=said,
        target_sqnr=target_sqnr,
        target_drop=as_allowance(target_drop),
        metric=metric,
        target=chosen,
        raise_to=raise_to,
        budget_s=budget_s,
    )
    source = OnnxSource(str(float_model))
    with opened(store) as kept_in:
        pipeline.check_folder(source, place, store=kept_in, overwrite=overwrite)
        try:
            found = repairs.fix(float_model, recipe, options, store=kept_in, on_progress=on_progress)
        except repairs.FixInterrupted as early:
            kept(Repaired(early.partial, None))
            raise
        if found.offered and recipe_file is not None:
            write_output(recipe_file, pipeline.recipe_file(_repaired(recipe, found), recipe_file.suffix))
        if found.offered and place is not None:
            built = pipeline.build(source, _repaired(recipe, found), store=kept_in, on_progress=on_progress)
            pipeline.deliver(built, place, store=kept_in, overwrite=overwrite)
    return kept(Repaired(found, place if found.offered else None))


def _repaired(recipe: Recipe, result: FixResult) -> Recipe:
    reasons = recipe.reasons
    if any(item.tensor == "reduce_range" for item in result.raised):
        reasons = pipeline.Reasons(reduce_range="the repair chose it: 8-bit products saturated")
    return replace(recipe, quantize=result.quantize, reasons=reasons)


def _recipe(
    pair: tuple[Path, Path], precision: str | None, calibrated_on: str | None, data: Data, target: Target
) -> Recipe:
    """How the quantized model was made: its build folder says so, else the caller and the model itself."""
    float_model, model = pair
    if (model / models.MANIFEST).is_file():
        return _recorded(model, calibrated_on)
    facts = graph.summary(graph.load(models.onnx_of(model))).precision
    seen = replace(data, samples=None) if calibrated_on is None else Data(calibrated_on)
    choices = pipeline.RecipeChoices(precision=precision or facts.label, data=seen)
    layer = {
        "optimize": False,
        "compile": False,
        "quantize": {
            "per_channel": any(word.startswith("per-axis") for word in facts.granularity),
            "reduce_range": repairs.cannot_saturate(model),
        },
    }
    return pipeline.resolve_recipe(OnnxSource(str(float_model)), target, choices, layer)


def _recorded(build: Path, calibrated_on: str | None) -> Recipe:
    """The recipe of a build. Its data is named without the place where it was."""
    made = pipeline.make_recipe(dict(models.read_build(build).recipe), str(build / models.MANIFEST))
    # The float model that it is repaired from takes its images in the same way already.
    made = replace(made, inputs=None)
    if calibrated_on is not None:
        return replace(made, data=replace(made.data, source=calibrated_on))
    name = made.data.source.rpartition(":")[0] if made.data.function else made.data.source
    if not made.data.random and not Path(name).exists():
        raise UsageError(
            f"the data that {build.name} was calibrated with is not here",
            cause=f"there is no {name} in this folder",
            fix="say where it is with `calibrated_on`",
        )
    return made
