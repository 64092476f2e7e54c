"""From a task word to the object that scores it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from modelwright.errors import UsageError
from modelwright.evaluation.tasks._base import Context, EvalTask
from modelwright.vocabulary import TASKS, ModelTask, read_task

_HERE = "modelwright.evaluation.tasks"


def scored_task(word: str) -> str:
    """The one spelling of a task that can be scored."""
    return _scorer(word)[0].name


def make_task(name: str, context: Context, settings: Mapping[str, str]) -> EvalTask:
    module, _, attribute = _scorer(name)[1].partition(":")
    made: EvalTask = getattr(importlib.import_module(f"{_HERE}.{module}"), attribute)(context, settings)
    return made


def _scorer(word: str) -> tuple[ModelTask, str]:
    task = read_task(word)
    if task.scorer is None:
        near = [other.name for other in TASKS if other.head == task.name and other.scorer is not None]
        raise UsageError(
            f"nothing scores {task.name}",
            cause="models can be built for it, but there is no metric that is everybody's",
            fix=f"use {' or '.join(near)}" if near else "score it yourself: `metric` is file.py:function",
        )
    return task, task.scorer
