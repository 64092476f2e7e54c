"""The user's own metric: a Python function in a file."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from modelwright._json import digest
from modelwright.errors import InputError, UsageError
from modelwright.quality.tasks._base import Context, EvalTask, Metric, Outputs, Row


class CustomTask(EvalTask):
    """`function(outputs, row) -> float`; more is better unless the function has `higher_is_better = False`."""

    def __init__(self, reference: str) -> None:
        super().__init__(Context(), {})
        self._reference = reference
        self._function = _load(reference)
        better = bool(getattr(self._function, "higher_is_better", True))
        name = getattr(self._function, "__name__", "metric")
        self.metric = Metric(name, unit="as defined by the user", higher_is_better=better, span=None, worst=None)

    def score(self, row: Row, outputs: Sequence[Outputs]) -> float:
        # The user's own code can raise anything; whatever it is, its metric could not be computed.
        try:
            return float(self._function(dict(outputs[0]), dict(row)))
        except Exception as error:
            raise InputError(
                f"the metric {Path(self._reference).name} failed",
                cause=f"{type(error).__name__}: {error}",
                fix="The function takes the outputs and the row, both dicts by name, and returns one number.",
            ) from error


def check_reference(reference: str) -> None:
    """Refuse what cannot be `file.py:function` before anything runs."""
    name, _, function = reference.rpartition(":")
    if not name.endswith(".py") or not function:
        raise UsageError(
            f"cannot read --metric {reference}",
            cause="it is the name of a Python file, a colon and the name of a function",
            fix="--metric my_metric.py:score",
        )
    if not Path(name).is_file():
        raise InputError(f"{name} does not exist", cause="no such file", fix="Check the path of --metric.")


def _load(reference: str) -> Any:
    check_reference(reference)
    name, _, function = reference.rpartition(":")
    path = Path(name).absolute()
    module_name = f"modelwright_metric_{digest(str(path))[:12]}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path.name} cannot be loaded", cause="it is not a Python file", fix="Check --metric.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(
            f"{path.name} cannot be loaded", cause=f"{type(error).__name__}: {error}", fix="Repair the file."
        ) from error
    found = getattr(module, function, None)
    if not callable(found) or inspect.isclass(found):
        raise InputError(
            f"{path.name} defines no function {function}", cause="--metric names it", fix="Check the name."
        )
    return found
