"""`modelwright.watch` and `modelwright.watch_history`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from modelwright.answers.watch import (
    WatchedModel,
    WatchHistory,
    WatchResult,
    WatchSuite,
    add_to_history,
    read_history,
    read_suite,
)
from modelwright.answers.watch import watch as watched
from modelwright.api._kept import kept, verb
from modelwright.api.compare import compare
from modelwright.measure import Arm, CompareResult
from modelwright.store import Store
from modelwright.vocabulary import OnProgress, silent


@verb
def watch(
    suite: str | Path,
    *,
    old: str | None = None,
    new: str | None = None,
    budget_s: float | None = None,
    history: str | Path | None = None,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> WatchResult:
    """The pinned artifacts of a suite on an old and a new runtime, side by side: does each still run, answer the same,
    lie on the same EPs, take as much memory and time?

    `old` and `new` (a runtime by name, or "here") and `budget_s` take the place of what the suite says; that is for the
    speed of each case, and its memory gets half as much. A line for each case is added to the file `history`.
    """
    read = read_suite(Path(suite), old, new)
    if budget_s is not None:
        read = replace(read, budget_s=budget_s)

    def race(asked: WatchSuite, arms: Sequence[Arm], case: WatchedModel) -> CompareResult:
        return compare(
            arms,
            target=case.target,
            data=case.data,
            budget_s=asked.budget_s,
            alpha=asked.each_alpha,
            max_slowdown=asked.max_slowdown,
            allow_different=True,
            measure_duplicates=True,
            operators=False,
            store=store,
            on_progress=on_progress,
        )

    result = watched(read, race, on_progress or silent)
    if history is not None:
        add_to_history(Path(history), result)
    return kept(result, refs=tuple(row.record for case in result.cases for row in case.rows if row.record is not None))


def watch_history(history: str | Path, *, alpha: float = 0.05) -> WatchHistory:
    """What a file of `watch` says about each case, run after run, and where its speed changed its level."""
    return read_history(Path(history), alpha)
