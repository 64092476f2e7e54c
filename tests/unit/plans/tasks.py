"""Stages of plain Python, for plans without models."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from modelwright.stages import Stage
from modelwright.worker import cpu_share, progress, task

UNUSED = "colorsys"


@dataclass(frozen=True)
class Params:
    text: str = "x"
    passes: bool = True


@dataclass(frozen=True)
class Outcome:
    """`passed` false is a gate that says no."""

    passed: bool
    cpus: int | None
    read: str


@task
def write(workdir: str, params: Params, model: str | None = None, folder: str | None = None) -> Outcome:
    """Writes its text; what it was given instead when it has an input."""
    read = Path(model).read_text() if model else ""
    Path(workdir, "model.onnx").write_text(params.text)
    return Outcome(params.passes, cpu_share(), read)


@task
def meet(workdir: str, params: Params, folder: str) -> Outcome:
    """Ends only when another one is there at the same time."""
    Path(folder, params.text).touch()
    while len(list(Path(folder).iterdir())) < 2:
        time.sleep(0.01)
    Path(workdir, "model.onnx").write_text(params.text)
    return Outcome(True, cpu_share(), "")


@task
def keep_apart(workdir: str, params: Params, folder: str) -> Outcome:
    """Fails when another one is there at the same time."""
    mark = Path(folder, "here")
    mark.touch(exist_ok=False)
    time.sleep(0.2)
    mark.unlink()
    Path(workdir, "model.onnx").write_text(params.text)
    return Outcome(True, cpu_share(), "")


@task
def tell_imports(workdir: str, params: Params, model: str) -> Outcome:
    """Whether something is loaded here that this task does not import."""
    Path(workdir, "model.onnx").write_text(params.text)
    return Outcome(True, None, str(UNUSED in sys.modules))


@task
def tell_process(workdir: str, params: Params) -> Outcome:
    Path(workdir, "model.onnx").write_text(params.text)
    return Outcome(params.passes, None, str(os.getpid()))


@task
def last_for_ever(workdir: str, params: Params) -> Outcome:
    progress("on it")
    while True:
        time.sleep(0.05)


def stage(function, name: str, version: str = "1", **more) -> Stage:
    return Stage(name, version, Params, Outcome, function, (), 60.0, **more)
