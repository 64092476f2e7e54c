"""`modelwright.evaluate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright import evaluation
from modelwright.api._kept import kept
from modelwright.api._model import artifact_of
from modelwright.evaluation import EvalResult
from modelwright.judge import Allowance, as_allowance
from modelwright.store import Store
from modelwright.targets import Target, parse_target
from modelwright.vocabulary import Data, OnProgress, as_data

if TYPE_CHECKING:
    from modelwright.api._model import Model


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
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> EvalResult:
    """Is the model as accurate as its reference, on the same samples, in the same run?

    `max_drop` is what may be lost: "1%" of the reference, 0.01 in the metric's unit, "1pt". Raises EvalInterrupted,
    with what was measured as `partial`, when it ends early.
    """
    options = evaluation.EvalOptions(
        metric=metric,
        settings=dict(settings or {}),
        max_drop=as_allowance(max_drop),
        span=span,
        outputs=outputs,
        min_cosine=min_cosine,
        min_sqnr_db=min_sqnr_db,
        target=str(target),
        reference_target=str(reference_target),
    )
    with artifact_of(model, parse_target(target), store, on_progress) as candidate:
        try:
            said = as_data(data)
            result = evaluation.evaluate(candidate.path, reference, said, task, options, on_progress=on_progress)
        except evaluation.EvalInterrupted as early:
            early.partial = kept(_named(early.partial, candidate.name))
            raise
    return kept(_named(result, candidate.name))


def _named(result: EvalResult, name: str) -> EvalResult:
    return replace(result, candidate=replace(result.candidate, model=name))
