"""`modelwright.analyze`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright import pipeline
from modelwright.api._kept import kept, verb
from modelwright.api._model import file_of
from modelwright.pipeline import Analyses, Analysis
from modelwright.store import Store
from modelwright.targets import Target, parse_targets
from modelwright.vocabulary import OnProgress

if TYPE_CHECKING:
    from modelwright.api._model import Model


@verb
def analyze(
    model: Model,
    targets: str | Target | Sequence[str | Target] = "cpu",
    *,
    component: str | None = None,
    suggest: bool = True,
    max_fallback: float | None = None,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> Analyses:
    """Which nodes each target really takes: its own partitioner is asked; with `suggest`, what would help is tried.

    `max_fallback` is the share of nodes that may be left to other EPs, for `accepted`; without it, none that the target
    should take.
    """
    asked, wanted = parse_targets(targets), dict[Path, list[Target]]()
    for target in asked:
        file = file_of(model, target, component=component, store=store, on_progress=on_progress)
        wanted.setdefault(file.path, []).append(target)
    found: dict[Target, Analysis] = {}
    for path, mine in wanted.items():
        answers = pipeline.analyze_all(path, mine, suggest=suggest, store=store, on_progress=on_progress)
        found |= zip(mine, answers, strict=True)
    return kept(Analyses(tuple(found[target] for target in asked), max_fallback))
