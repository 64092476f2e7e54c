"""`wright config`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelwright._lazy import lazy
from modelwright._output import check_output
from modelwright.cli._call import VerbCall, as_python
from modelwright.cli._completing import precision_names, task_names
from modelwright.cli._data import data_options
from modelwright.cli._options import (
    Output,
    limit_options,
    optional_model,
    require_model,
    target_option,
    verb_options,
    write_document,
)
from modelwright.cli._streams import write_utf8

if TYPE_CHECKING:
    from modelwright import pipeline
    from modelwright.pipeline import Recipe
else:
    pipeline = lazy("modelwright.pipeline")


@click.command("config")
@optional_model
@click.option("--task", shell_complete=task_names, help="What the model is for; by default its architecture says.")
@click.option("--random-weights", is_flag=True, help="For a config-only folder.")
@target_option
@click.option("--precision", shell_complete=precision_names, help="As in `wright build`.")
@data_options(partly=True)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of recipes instead.")
@limit_options
@verb_options
def command(model: str | None, target: str, schema: bool, out: Output, **said: Any) -> None:
    """Write the resolved recipe of a build: every `auto` turned into a value, ready to be edited and kept.

    Use it with `wright build -r FILE`. A recipe may be partial: what it does not say is resolved again. A Hugging Face
    model that could not be exported is refused as `wright build` would, without loading its weights. --save writes a
    .toml or .json file instead of stdout.
    """
    if schema:
        out.refuse_python("--schema")
        write_document(pipeline.schema_of(pipeline.Recipe))
        return
    call = VerbCall("config", require_model(model), target, **said)
    if out.as_python:
        write_utf8(as_python(call, out=out))
        return
    check_output(out.save)
    _show(call.run(), out, out.save)


def _show(recipe: Recipe, out: Output, save: Path | None) -> None:
    if save is not None:
        out.note(f"wrote {recipe.save(save)}")
    shown = pipeline.toml_text(recipe) if save is None else ""
    out.answer("config", {"recipe": recipe}, lambda _, console: write_utf8(shown))
