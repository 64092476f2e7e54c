"""`modelwright.advise`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from modelwright import answers
from modelwright.answers import AdviseOptions, Decision, WantedLimits
from modelwright.api._inputs import data_for
from modelwright.api._kept import kept, verb
from modelwright.api._opened import opened
from modelwright.api.read import read
from modelwright.errors import UsageError
from modelwright.judge import as_allowance
from modelwright.models import onnx_of
from modelwright.store import Store
from modelwright.targets import Target, parse_targets
from modelwright.vocabulary import Data, OnProgress


@verb
def advise(
    model: str | Path,
    targets: str | Target | Sequence[str | Target] = "cpu",
    *,
    max_drop: str | float | None = None,
    latency_ms: float | None = None,
    memory: int | None = None,
    data: Data | str | None = None,
    task: str | None = None,
    metric: str | None = None,
    precisions: Sequence[str] | None = None,
    threads: int | None = None,
    budget_s: float = 40.0,
    replay: str | Path | None = None,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> Decision:
    """Which precision on which target: a few builds, each measured, and the one that holds what was asked.

    `max_drop` is what may be lost of the metric of `task` on the labelled `data`, `latency_ms` what nine of ten runs
    may take, `memory` the bytes that the process may reach. With `replay`, a record of an earlier decision about the
    same question, what changed since is told.
    """
    if max_drop is not None and data is None:
        raise UsageError("`max_drop` needs labelled `data`", cause="there is nothing to judge by", fix="give `data`")
    wanted = WantedLimits(None if max_drop is None else str(max_drop), latency_ms, memory)
    options = AdviseOptions(
        targets=parse_targets(targets),
        wanted=wanted,
        limit=as_allowance(max_drop),
        data=data_for(data, model),
        task=task,
        metric=metric,
        precisions=tuple(precisions or ()),
        threads=threads,
        budget_s=budget_s,
    )
    then = None if replay is None else _then(replay, wanted, store)
    with opened(store) as place:
        found = answers.advise(onnx_of(model), options, store=place, on_progress=on_progress)
    if then is None:
        return kept(found)
    found = replace(found, replayed=str(replay), changed=answers.differences(then[1], found))
    return kept(found, refs=(then[0],))


def _then(replay: str | Path, wanted: WantedLimits, store: Store | None) -> tuple[str, Decision]:
    record = read(replay, store=store)
    if not isinstance(record.payload, Decision) or record.payload.wanted != wanted:
        raise UsageError(
            "the record answers another question",
            cause="it is no decision, or other limits were asked for then",
            fix="replay it with the limits that it was made with",
        )
    return record.id, record.payload
