"""From a task word to the object that scores it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from modelwright._extensions import TASKS as ADDED
from modelwright._extensions import broken_extension, extensions, load_extension
from modelwright.errors import UsageError
from modelwright.evaluation.tasks._base import Context, EvalTask
from modelwright.vocabulary import TASKS, ModelTask, find_task, read_task

_HERE = "modelwright.evaluation.tasks"


def scored_task(word: str) -> str:
    """The one spelling of a task that can be scored."""
    if word in extensions(ADDED):
        return word
    return _scorer(word)[0].name


def make_task(name: str, context: Context, settings: Mapping[str, str]) -> EvalTask:
    if name in extensions(ADDED):
        return _outside(name)(context, settings)
    module, _, attribute = _scorer(name)[1].partition(":")
    made: EvalTask = getattr(importlib.import_module(f"{_HERE}.{module}"), attribute)(context, settings)
    return made


def _outside(name: str) -> type[EvalTask]:
    """A class that another package brings."""
    found = load_extension(ADDED, name, type)
    if not issubclass(found, EvalTask) or find_task(name) is not None:
        raise broken_extension(extensions(ADDED)[name], "it is no EvalTask, or one of that name exists already")
    return found


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
