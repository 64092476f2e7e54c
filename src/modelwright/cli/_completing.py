"""What the shell offers for a half-typed value. Imported only while it asks, but for the names of these functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from modelwright._lazy import lazy

if TYPE_CHECKING:
    from modelwright import targets as catalogue
    from modelwright import vocabulary, worker
    from modelwright.stages import optimize as optimizing
    from modelwright.stages import quantize as quantizing
else:
    catalogue = lazy("modelwright.targets")
    optimizing = lazy("modelwright.stages.optimize")
    quantizing = lazy("modelwright.stages.quantize")
    vocabulary = lazy("modelwright.vocabulary")
    worker = lazy("modelwright.worker")


def target_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _beginning(incomplete, map(str, catalogue.known_targets()))


def precision_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _beginning(incomplete, ("fp32", *quantizing.precision_words()))


def task_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _beginning(incomplete, (task.name for task in vocabulary.TASKS))


def runtime_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _beginning(incomplete, worker.runtime_names())


def pass_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The last of several passes, which have commas between."""
    before, comma, last = incomplete.rpartition(",")
    names = [item.name for item in optimizing.passes()]
    known = [f"-{name}" for name in names] if last.startswith("-") else ["none", *optimizing.PRESETS, *names]
    return [CompletionItem(f"{before}{comma}{item.value}") for item in _beginning(last, known)]


def data_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A file or folder, or the word for made-up samples."""
    return [*_beginning(incomplete, (vocabulary.RANDOM,)), CompletionItem(incomplete, type="file")]


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def _beginning(incomplete: str, words: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]
