"""`modelwright.read` and `modelwright.open_build`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modelwright import evidence, models
from modelwright.api._opened import opened
from modelwright.diagnosis import DebugReport
from modelwright.evaluation import EvalResult
from modelwright.evidence import Record
from modelwright.measure import CompareResult, PerfResult
from modelwright.models import BuildFolder
from modelwright.store import Store

_ANSWERS = {answer.kind: answer for answer in (PerfResult, CompareResult, EvalResult, DebugReport)}


def read(record: str | Path, *, store: Store | None = None) -> Record[Any]:
    """A record by the name of its file, or by the beginning of its id; the answer in it is typed."""
    with opened(store) as place:
        return evidence.read_record(record, place, _ANSWERS.get)


def open_build(folder: str | Path) -> BuildFolder:
    """A folder that a build wrote, if every file of it still is what was built."""
    return models.read_build(Path(folder))
