"""Stages of plain Python, for plans without models. Light: children import it."""

from __future__ import annotations

import time
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright.errors import InputError
from modelwright.stages import Stage
from modelwright.worker import progress, task


@dataclass(frozen=True)
class TextParams:
    text: str = "x"
    passes: bool = True


@dataclass(frozen=True)
class TextOutcome:
    """`passed` false is a gate that says no; `read` is what its input held."""

    passed: bool
    read: str


@task
def write(workdir: str, params: TextParams, model: str | None = None) -> TextOutcome:
    """Writes its text."""
    read = Path(model).read_text(encoding="utf-8") if model else ""
    Path(workdir, "model.onnx").write_text(params.text, encoding="utf-8")
    return TextOutcome(params.passes, read)


@task
def refuse(workdir: str, params: TextParams) -> TextOutcome:
    raise InputError("it cannot be done", cause="it never could", fix="do not ask")


@task
def last_for_ever(workdir: str, params: TextParams) -> TextOutcome:
    progress("on it")
    while True:
        time.sleep(0.05)


def _passed(outcome: TextOutcome) -> bool:
    return outcome.passed


WRITE = Stage("write", "1", TextParams, TextOutcome, write, (), 60.0)
WRITE_AGAIN = Stage("write", "2", TextParams, TextOutcome, write, (), 60.0)
REFUSE = Stage("refuse", "1", TextParams, TextOutcome, refuse, (), 60.0)
LAST = Stage("last_for_ever", "1", TextParams, TextOutcome, last_for_ever, (), 60.0)
FLEETING = Stage("fleeting", "1", TextParams, TextOutcome, write, (), 60.0, keeps=_passed)
