"""`modelwright.build`, `modelwright.plan` and `modelwright.config`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from modelwright import pipeline
from modelwright._json import plain
from modelwright.api._accuracy import refuse_unlabelled, with_accuracy
from modelwright.api._elsewhere import executor_on
from modelwright.api._kept import kept, verb
from modelwright.api._opened import opened
from modelwright.data import drawing
from modelwright.errors import UsageError
from modelwright.judge import Allowance, as_allowance
from modelwright.models import BuildSource, HfSource, OnnxSource, Source, SourceChoices, onnx_of, resolve
from modelwright.pipeline import BuildFailure, Builds, Plans, Recipe, RecipeChoices, TargetPlan
from modelwright.recipes import CATALOG_WORD, find_entry, matching_entry, own_folder
from modelwright.stages.quantize import Effort
from modelwright.store import Store, unwritten
from modelwright.targets import Target, parse_target, parse_targets
from modelwright.vocabulary import Data, OnProgress, PixelInputs, as_data

Targets = str | Target | Sequence[str | Target]
AnyRecipe = str | Path | Mapping[str, Any] | Recipe


@verb
def build(
    model: str | Path | Source,
    targets: Targets | None = None,
    *,
    recipe: AnyRecipe | None = None,
    precision: str | None = None,
    effort: Effort | None = None,
    passes: Sequence[str] | None = None,
    dims: Mapping[str, int] | None = None,
    opset: int | None = None,
    data: Data | str | None = None,
    samples: int | None = None,
    seed: int | None = None,
    compile: bool | None = None,
    provider_options: Mapping[str, str] | None = None,
    inputs: PixelInputs | None = None,
    max_drop: str | float | Allowance | None = None,
    force: bool = False,
    task: str | None = None,
    revision: str | None = None,
    random_weights: bool = False,
    trust_remote_code: bool = False,
    output: str | Path | None = None,
    overwrite: bool = False,
    shared: bool = False,
    scheduler: str | None = None,
    tls: str | Path | None = None,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> Builds:
    """Take a model to checked artifacts: export, optimize, quantize, validate, compile.

    Without `targets`: what the recipe is for, else cpu. With several, `output` gets a folder for each. `effort` is how
    long quantizing may take to keep the accuracy: fast, normal or best. `force` keeps
    passes whose operators the target's EP does not claim. `provider_options` go to the EP wherever it compiles or is
    asked. `inputs` is how the finished model takes its images: bytes, channels last, not normalized. What the store has
    is not made again. `max_drop` is what may be lost of the metric of `task` on the labelled
    `data`: "1%" of the model's own, 0.01 in its unit, "1pt". With `scheduler` (`tls://…`) the stages run on the workers
    of that cluster, and what they make comes into this store; `tls` is the folder of this machine's certificates.
    `shared` gives every target a folder in `output`, also a single one, and keeps large files that several of
    them have once: as read-only hard links, so each folder is whole by itself.
    """
    allowed = as_allowance(max_drop)
    if shared and output is None:
        raise UsageError(
            "nothing would be shared", cause="no folder is written without `output`", fix="say where: `output`"
        )
    source = buildable(model, SourceChoices(task, revision, trust_remote_code, random_weights))
    choices = RecipeChoices(
        precision=precision,
        effort=effort,
        passes=None if passes is None else tuple(passes),
        data=_data(data),
        samples=samples,
        seed=seed,
        compile=compile,
        opset=opset,
        dims=tuple((dims or {}).items()),
        provider_options=tuple(sorted((provider_options or {}).items())),
        inputs=inputs,
    )
    with opened(store) as place, drawing(place.root.parent), executor_on(scheduler, tls) as executor:
        recipes = _recipes(source, targets, recipe, choices)
        if allowed is not None:
            refuse_unlabelled(recipes, task or source.task)
        alone = len(recipes) == 1 and not shared
        folders = [_folder(output, recipe, alone=alone) for recipe in recipes]
        for folder in folders:
            pipeline.check_folder(source, folder, store=place, overwrite=overwrite)
        found = pipeline.build_all(
            source, recipes, store=place, on_progress=on_progress, force=force, executor=executor
        )
        failed = [item for item in found if isinstance(item, BuildFailure)]
        if len(failed) == len(found):
            raise failed[0].error
        pairs = zip(found, folders, strict=True)
        built = [(item, folder) for item, folder in pairs if not isinstance(item, BuildFailure)]
        if allowed is not None:
            word = str(task or source.task)
            built = [(with_accuracy(source, item, allowed, word, place, on_progress), folder) for item, folder in built]
        for item, folder in built:
            if folder is not None:
                pipeline.deliver(item, folder, store=place, overwrite=overwrite, shared=shared)
    return kept(Builds(tuple(item for item, _ in built), tuple(folder for _, folder in built), tuple(failed)))


def plan(
    model: str | Path | Source,
    targets: Targets | None = None,
    *,
    recipe: AnyRecipe | None = None,
    precision: str | None = None,
    effort: Effort | None = None,
    passes: Sequence[str] | None = None,
    dims: Mapping[str, int] | None = None,
    opset: int | None = None,
    data: Data | str | None = None,
    samples: int | None = None,
    seed: int | None = None,
    compile: bool | None = None,
    provider_options: Mapping[str, str] | None = None,
    inputs: PixelInputs | None = None,
    task: str | None = None,
    revision: str | None = None,
    random_weights: bool = False,
    trust_remote_code: bool = False,
    store: Store | None = None,
) -> Plans:
    """What `build` would do with the same arguments: which stages the store has, and which would run.

    Nothing is run and nothing is written. What the stages would take is a forecast, told by earlier runs of theirs.
    """
    source = buildable(model, SourceChoices(task, revision, trust_remote_code, random_weights))
    choices = RecipeChoices(
        precision=precision,
        effort=effort,
        passes=None if passes is None else tuple(passes),
        data=_data(data),
        samples=samples,
        seed=seed,
        compile=compile,
        opset=opset,
        dims=tuple((dims or {}).items()),
        provider_options=tuple(sorted((provider_options or {}).items())),
        inputs=inputs,
    )
    with unwritten(), opened(store) if store is not None else Store(read_only=True) as place:
        recipes = _recipes(source, targets, recipe, choices, planning=True)
        found = pipeline.plan_all(source, recipes, store=place)
        pairs = zip(recipes, found, strict=True)
        plans = [TargetPlan(one.target, steps, pipeline.peak_of(source, one, steps)) for one, steps in pairs]
    return Plans(tuple(plans))


def config(
    model: str | Path | Source,
    target: str | Target = "cpu",
    *,
    precision: str | None = None,
    data: Data | str | None = None,
    samples: int | None = None,
    seed: int | None = None,
    task: str | None = None,
    random_weights: bool = False,
) -> Recipe:
    """The resolved recipe of a build: every `auto` turned into a value.

    A Hugging Face model that could not be exported is refused as `build` would, without loading its weights.
    """
    source = buildable(model, SourceChoices(task, random_weights=random_weights))
    choices = RecipeChoices(precision=precision, data=_data(data), samples=samples, seed=seed)
    recipe = pipeline.resolve_recipe(source, parse_target(target), choices)
    pipeline.rehearse(source, recipe)
    return recipe


def buildable(model: str | Path | Source, choices: SourceChoices) -> OnnxSource | HfSource:
    """ONNX files and Hugging Face models as they are; of a build folder its model."""
    source = resolve(model, **vars(choices))
    return OnnxSource(str(onnx_of(source))) if isinstance(source, BuildSource) else source


def _data(data: Data | str | None) -> Data | None:
    """Nothing said about data is not the same as made-up data: a recipe may name some."""
    return None if data is None else as_data(data)


def _recipes(
    source: OnnxSource | HfSource,
    targets: Targets | None,
    recipe: AnyRecipe | None,
    choices: RecipeChoices,
    *,
    planning: bool = False,
) -> list[Recipe]:
    """One for each target; without a target, for the one that the recipe names."""
    layer = read_recipe(recipe, source)
    wanted = parse_targets(targets if targets is not None else str(layer.get("target", "cpu")))
    return [pipeline.resolve_recipe(source, target, choices, layer, planning=planning) for target in wanted]


def read_recipe(recipe: AnyRecipe | None, source: OnnxSource | HfSource | None = None) -> dict[str, Any]:
    """What it says, whole or in part; nothing where there is none. `catalog:NAME` is a recipe of the catalogue, and
    `catalog` the one that is about this source."""
    if recipe is None:
        return {}
    word, _, name = str(recipe).partition(":") if isinstance(recipe, str | Path) else ("", "", "")
    if word == CATALOG_WORD and (name or source is not None):
        return _of_catalog(name, source)
    if isinstance(recipe, str | Path):
        return pipeline.read_layer(Path(recipe))
    return plain(recipe) if isinstance(recipe, Recipe) else dict(recipe)


def _of_catalog(name: str, source: OnnxSource | HfSource | None) -> dict[str, Any]:
    folder = own_folder()
    if not name:
        assert source is not None
        return matching_entry(source, folder).recipe
    found = find_entry(name, folder)
    if source is not None and source.identity() != found.identity():
        said = "%s is about another model (%s): what is shown of it says nothing about this one"
        logging.getLogger(__name__).warning(said, f"{CATALOG_WORD}:{name}", found.identity())
    return found.recipe


def _folder(output: str | Path | None, recipe: Recipe, *, alone: bool) -> Path | None:
    """The folder itself, or one in it for each target."""
    if output is None:
        return None
    return Path(output) if alone else target_folder(Path(output), recipe.target)


def target_folder(output: Path, target: str) -> Path:
    """Where the build for one of several targets goes."""
    return output / parse_target(target).folder_name
