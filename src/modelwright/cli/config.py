"""`wright config`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelwright._lazy import lazy
from modelwright._output import check_output, write_output
from modelwright.cli._building import buildable, only
from modelwright.cli._data import data_options
from modelwright.cli._options import Output, optional_model, output_options, target_options, write_document
from modelwright.cli._streams import write_utf8
from modelwright.errors import UsageError

if TYPE_CHECKING:
    from modelwright import models
    from modelwright import pipeline as building
    from modelwright.targets import Target
    from modelwright.vocabulary import Data
else:
    building = lazy("modelwright.pipeline")
    models = lazy("modelwright.models")


@click.command("config")
@optional_model
@click.option("--task", help="What the model is for; by default its architecture says.")
@click.option("--random-weights", is_flag=True, help="For a config-only folder.")
@target_options
@click.option("--precision", help="As in `wright build`.")
@data_options(partly=True)
@click.option("--save", type=click.Path(path_type=Path), help="File to write, .toml or .json. Default: stdout.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of recipes instead.")
@output_options
def command(
    model: str | None,
    task: str | None,
    random_weights: bool,
    wanted: tuple[Target, ...],
    precision: str | None,
    data: Data | None,
    samples: int | None,
    seed: int | None,
    save: Path | None,
    schema: bool,
    out: Output,
) -> None:
    """Write the resolved recipe of a build: every `auto` turned into a value, ready to be edited and kept.

    Use it with `wright build -r FILE`. A recipe may be partial: what it does not say is resolved again. A Hugging Face
    model that could not be exported is refused as `wright build` would, without loading its weights.
    """
    if schema:
        write_document(building.Recipe.model_json_schema())
        return
    if model is None:
        raise UsageError(
            "no model was given", cause="a recipe is for one model", fix="wright config -m MODEL --target T"
        )
    check_output(save)
    wishes = building.Wishes(precision=precision, data=data, samples=samples, seed=seed)
    source = buildable(models.resolve(model, task=task, random_weights=random_weights))
    recipe = building.resolve_recipe(source, only(wanted), wishes)
    building.rehearse(source, recipe)
    if save is not None:
        write_output(save, building.recipe_file(recipe, save.suffix))
        out.note(f"wrote {save}")
    shown = building.toml_text(recipe) if save is None else ""
    out.answer("config", {"recipe": recipe}, lambda _, console: write_utf8(shown))
