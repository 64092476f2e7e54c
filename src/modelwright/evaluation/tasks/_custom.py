"""The user's own metric: a Python function in a file, or one that another package brings under a name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from modelwright._extensions import METRICS, extensions, load_function
from modelwright.data import UserFunction
from modelwright.errors import InputError, UsageError
from modelwright.evaluation.tasks._base import Context, EvalTask, Metric, Outputs, Row

_FIX = "The function takes the outputs and the row, both dicts by name, and returns one number."


class CustomTask(EvalTask):
    """`function(outputs, row) -> float`; more is better unless the function has `higher_is_better = False`.

    Its attribute `span` says how far the scores of one sample can lie apart.
    """

    def __init__(self, reference: str) -> None:
        super().__init__(Context(), {})
        check_reference(reference)
        self._metric = UserFunction(reference, "the metric", _FIX)
        self._function = load_function(METRICS, reference) if reference in extensions(METRICS) else self._metric.load()
        better = bool(getattr(self._function, "higher_is_better", True))
        name = getattr(self._function, "__name__", "metric")
        span = _span(self._function)
        self.metric = Metric(name, unit="as defined by the user", higher_is_better=better, span=span, worst=None)

    def score(self, row: Row, outputs: Sequence[Outputs]) -> float:
        with self._metric.running():
            return float(self._function(dict(outputs[0]), dict(row)))


def _span(function: Any) -> float | None:
    declared = getattr(function, "span", None)
    if declared is None:
        return None
    if isinstance(declared, bool) or not isinstance(declared, int | float) or not 0.0 < declared < math.inf:
        raise InputError(
            f"the metric's span {declared!r} is no positive number",
            cause="it says how far the scores of two models can lie apart on one sample",
            fix="For scores from 0 to 1 write: function.span = 1.0",
        )
    return float(declared)


def check_reference(reference: str) -> None:
    """Refuse what can be neither `file.py:function` nor an installed metric before anything runs."""
    if reference in extensions(METRICS):
        return
    name, _, function = reference.rpartition(":")
    if not name.endswith(".py") or not function:
        raise UsageError(
            f"cannot read `metric` {reference}",
            cause="it is the name of a Python file, a colon and the name of a function",
            fix="`metric` my_metric.py:score",
        )
    if not Path(name).is_file():
        raise InputError(f"{name} does not exist", cause="no such file", fix="Check the path of `metric`.")
