"""Samples of an earlier run of the same evaluation: they count, so none is measured twice.

That is sound however often it is done: the verdict is a bet that may be looked at after every sample (docs/eval.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from modelwright._lazy import lazy
from modelwright.errors import InputError, UsageError
from modelwright.evaluation._types import EvalResult, EvalSide
from modelwright.evaluation.tasks import EvalTask
from modelwright.models import FileDigest

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")


def check_sides(earlier: EvalResult, task: str | None, files: Sequence[tuple[FileDigest, ...]]) -> None:
    """Before anything is opened: the same models by content, scored for the same task."""
    if earlier.task != task:
        refuse("the tasks")
    if [earlier.candidate.files, earlier.reference.files] != list(files):
        refuse("the models")


def check_engines(earlier: EvalResult, opened: Sequence[EvalSide]) -> None:
    before = [(side.target, side.engine, side.ep_version) for side in (earlier.candidate, earlier.reference)]
    if before != [(side.target, side.engine, side.ep_version) for side in opened]:
        refuse("the targets or the versions of what runs the models")


def check_task(earlier: EvalResult, task: EvalTask | None) -> None:
    """A sample's own score can be added to; what was computed from all of them cannot."""
    if task is None or earlier.metric != task.metric:
        refuse("the metrics")
    apart = type(task).collect is EvalTask.collect and type(task).more is EvalTask.more
    if task.metric.form != "mean" or not apart:
        raise UsageError(
            "samples cannot be added to this evaluation",
            cause=f"{task.metric.name} is computed from all samples at once",
            fix="run it again with more `samples`",
        )


def further(earlier: EvalResult, count: int, samples: int | None, seed: int) -> list[int]:
    """So many of the rows that were not used yet, or all of them."""
    if count != earlier.data.available:
        refuse("the numbers of rows")
    used = {score.index for score in earlier.scores}
    drawn = np.random.default_rng([seed, count]).permutation(count)
    rest = [int(index) for index in drawn if int(index) not in used][:samples]
    if not rest:
        raise InputError(
            "there are no more samples", cause=f"all {count} rows of the data were used", fix="add rows to the data"
        )
    return sorted(rest)


def refuse(what: str) -> NoReturn:
    raise UsageError(
        "the earlier samples do not belong to this evaluation",
        cause=f"{what} differ",
        fix="repeat the call that gave them and add `retry`, or leave `retry` out",
    )
