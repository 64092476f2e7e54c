"""Builds as a record keeps them, and back: a stage's outcome gets its type again from the stage's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from modelwright._json import plain
from modelwright._typed import typed
from modelwright.errors import ExecutionError, InputError, StoreError, UsageError, WrightError
from modelwright.pipeline._build import BuildFailure, BuildResult, Built, KeptAccuracy
from modelwright.pipeline._import import ImportOutcome
from modelwright.pipeline._recipe import Recipe
from modelwright.plans import ModelInput, StageResult
from modelwright.stages.check import CheckOutcome
from modelwright.stages.compile import CompileOutcome
from modelwright.stages.decode import AgreeOutcome
from modelwright.stages.export import ExportOutcome, Link
from modelwright.stages.inputs import InputsOutcome
from modelwright.stages.optimize import OptimizeOutcome
from modelwright.stages.quantize import QuantizeOutcome
from modelwright.stages.validate import ValidateOutcome
from modelwright.store import Artifact, Key
from modelwright.vocabulary import InputSpec

_OUTCOMES: Mapping[str, type] = {
    "import": ImportOutcome,
    "export": ExportOutcome,
    "inputs": InputsOutcome,
    "optimize": OptimizeOutcome,
    "quantize": QuantizeOutcome,
    "validate": ValidateOutcome,
    "compile": CompileOutcome,
    "check": CheckOutcome,
    "agree": AgreeOutcome,
}
_FAMILIES = {family.exit_code: family for family in (UsageError, InputError, ExecutionError, StoreError)}


def build_form(build: BuildResult) -> dict[str, Any]:
    """Everything, as plain JSON values."""
    whole = None if build.agreement is None else _form(build.agreement, "kind")
    parts = [_part_form(part) for part in build.components]
    return {**_form(build, "components", "agreement"), "components": parts, "agreement": whole}


def failure_form(failure: BuildFailure) -> dict[str, Any]:
    words = ("problem", "cause", "fix", "exit_code")
    return {"target": failure.target, **{word: getattr(failure.error, word) for word in words}}


def build_of(form: Mapping[str, Any]) -> BuildResult:
    return BuildResult(
        source=form["source"],
        identity=form["identity"],
        task=form["task"],
        target=form["target"],
        recipe=typed(Recipe, form["recipe"]),
        components=tuple(_part_of(part) for part in form["components"]),
        links=typed(tuple[Link, ...], form["links"]),
        seconds=form["seconds"],
        accuracy=None if form.get("accuracy") is None else typed(KeptAccuracy, form["accuracy"]),
        agreement=None if form.get("agreement") is None else _stage_of(form["agreement"]),
    )


def failure_of(form: Mapping[str, Any]) -> BuildFailure:
    family = _FAMILIES.get(form["exit_code"], WrightError)
    return BuildFailure(form["target"], family(form["problem"], cause=form["cause"], fix=form["fix"]))


def folder_of(form: str | None) -> Path | None:
    return None if form is None else Path(form)


def _part_form(part: Built) -> dict[str, Any]:
    return {**_form(part, "stages"), "stages": [_form(stage, "kind") for stage in part.stages]}


def _part_of(form: Mapping[str, Any]) -> Built:
    return Built(
        name=form["name"],
        stages=tuple(_stage_of(stage) for stage in form["stages"]),
        final=typed(ModelInput, form["final"]),
        validation=typed(ValidateOutcome, form["validation"]),
        inputs=typed(InputSpec, form["inputs"]),
        check=None if form.get("check") is None else typed(CheckOutcome, form["check"]),
    )


def _stage_of(form: Mapping[str, Any]) -> StageResult[Any]:
    kept = {**form, "key": Key(**form["key"]), "artifact": typed(Artifact, form["artifact"])}
    return StageResult(kind=_OUTCOMES[form["stage"]], **kept)


def _form(value: Any, *without: str) -> dict[str, Any]:
    return {item.name: plain(getattr(value, item.name)) for item in fields(value) if item.name not in without}
