"""The gate of a build that has labelled data: an evaluation says how much of the task is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.api._model import artifact_of
from modelwright.errors import UsageError
from modelwright.judge import Allowance, VerdictKind
from modelwright.models import HfSource, OnnxSource
from modelwright.pipeline import BuildResult, KeptAccuracy, Recipe, judged_rows
from modelwright.store import Store
from modelwright.targets import parse_target
from modelwright.vocabulary import OnProgress

if TYPE_CHECKING:
    from modelwright import evaluation
else:
    evaluation = lazy("modelwright.evaluation")

_PASSED = {VerdictKind.PASS: True, VerdictKind.FAIL: False}


def refuse_unlabelled(recipes: list[Recipe], task: str | None) -> None:
    """Before anything is built: made-up inputs have no right answers, and rows are scored by a task."""
    if any(recipe.data.random for recipe in recipes):
        raise UsageError(
            "a drop of accuracy needs labelled data",
            cause="made-up inputs have no right answers",
            fix="give real samples with labels as `data`, or leave `max_drop` out",
        )
    if task is None:
        raise UsageError(
            "a drop of accuracy needs a task", cause="it says how rows are scored", fix="say it with `task`"
        )


def reference_of(source: OnnxSource | HfSource) -> str:
    """The model as it came."""
    return source.path if isinstance(source, OnnxSource) else source.folder or source.name


def with_accuracy(
    source: OnnxSource | HfSource,
    built: BuildResult,
    allowed: Allowance,
    task: str,
    store: Store,
    on_progress: OnProgress | None,
) -> BuildResult:
    """The build with what an evaluation says, on all rows of its data but those that found its ranges; a compiled one
    runs on its target."""
    reference = reference_of(source)
    target = built.target if built.recipe.compile is not None else "cpu"
    data, after = judged_rows(built.recipe)
    options = evaluation.EvalOptions(max_drop=allowed, target=target, after=after)
    try:
        with artifact_of(built, parse_target(built.target), store, on_progress) as candidate:
            found = evaluation.evaluate(candidate.path, reference, data, task, options, on_progress=on_progress)
    except evaluation.NoRowsLeftError as error:
        unknown = KeptAccuracy(None, str(allowed), None, None, None, 0, target, (f"{error.cause}: give more rows",))
        return replace(built, accuracy=unknown)
    values = found.values
    return replace(
        built,
        accuracy=KeptAccuracy(
            passed=None if found.verdict is None else _PASSED.get(found.verdict),
            max_drop=str(found.max_drop),
            metric=None if found.metric is None else found.metric.name,
            value=None if values is None else values.candidate,
            reference=None if values is None else values.reference,
            samples=found.data.selected,
            target=target,
            reasons=found.reasons,
        ),
    )
