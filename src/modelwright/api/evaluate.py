"""`modelwright.evaluate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright import evaluation
from modelwright.api._inputs import data_for
from modelwright.api._kept import kept, verb
from modelwright.api._model import artifact_of
from modelwright.api.read import read
from modelwright.errors import UsageError
from modelwright.evaluation import EvalOptions, EvalResult
from modelwright.evidence import Record
from modelwright.judge import Allowance, as_allowance
from modelwright.store import Store
from modelwright.targets import Target, parse_target
from modelwright.vocabulary import Data, On, OnProgress

if TYPE_CHECKING:
    from modelwright.api._model import Model


@verb
def evaluate(
    model: Model,
    reference: str | Path,
    *,
    data: Data | str | None = None,
    task: str | None = None,
    metric: str | None = None,
    settings: Mapping[str, str] | None = None,
    max_drop: str | float | Allowance | None = None,
    span: float | None = None,
    outputs: bool = False,
    min_cosine: float | None = None,
    min_sqnr_db: float | None = None,
    target: str | Target = "cpu",
    reference_target: str | Target = "cpu",
    after: int = 0,
    retry: str | Path | None = None,
    on: str | On | None = None,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> EvalResult:
    """Is the model as accurate as its reference, on the same samples, in the same run?

    `max_drop` is what may be lost: "1%" of the reference, 0.01 in the metric's unit, "1pt". `after`: so many rows went
    into the model's calibration, and are not judged. The samples of `retry`, a record of the same evaluation, count
    too, and others are drawn. With `on` both run on that worker of a cluster.
    Raises EvalInterrupted, with what was measured as `partial`, when it ends early.
    """
    options = EvalOptions(
        metric=metric,
        settings=dict(settings or {}),
        max_drop=as_allowance(max_drop),
        span=span,
        outputs=outputs,
        min_cosine=min_cosine,
        min_sqnr_db=min_sqnr_db,
        target=str(target),
        reference_target=str(reference_target),
        after=after,
    )
    earlier = None if retry is None else _earlier(retry, store, options)
    refs = () if earlier is None else (earlier.id,)
    with artifact_of(model, parse_target(target), store, on_progress) as candidate:
        try:
            result = evaluation.evaluate(
                candidate.path,
                reference,
                data_for(data, model),
                task,
                options,
                retry=earlier.payload if earlier is not None else None,
                on_progress=on_progress,
            )
        except evaluation.EvalInterrupted as early:
            early.partial = kept(_named(early.partial, candidate.name), refs=refs)
            raise
    return kept(_named(result, candidate.name), refs=refs)


def _earlier(retry: str | Path, store: Store | None, options: EvalOptions) -> Record[EvalResult]:
    found = read(retry, store=store)
    asked = {"metric": options.metric, "settings": dict(options.settings)}
    before = {"metric": found.parameters.get("metric"), "settings": dict(found.parameters.get("settings") or {})}
    if found.kind != EvalResult.kind or asked != before:
        what = "their scores were made in another way" if found.kind == EvalResult.kind else f"it is of '{found.kind}'"
        raise UsageError(
            "the earlier samples do not belong to this evaluation",
            cause=what,
            fix="repeat the call that gave them and add `retry`, or leave `retry` out",
        )
    return found


def _named(result: EvalResult, name: str) -> EvalResult:
    return replace(result, candidate=replace(result.candidate, model=name))
