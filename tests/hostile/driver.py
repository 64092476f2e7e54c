"""Runs command lines one after another, each in a process of its own that has the imports behind it.

As a program it is the mother: it imports the command line once, then forks for every job it reads. The fork becomes
`wright`: its own session, its own stdin, stdout and stderr, and the entry point of the installed script. A crash,
a hang or a `sys.exit` therefore belongs to one case and harms no other.
"""

from __future__ import annotations

import dataclasses
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

PRELOAD = (
    "numpy", "onnx", "onnx.numpy_helper", "rich.console", "rich.table", "modelwright.cli._app",
    "modelwright.cli.inspect", "modelwright.cli.build", "modelwright.cli.quantize", "modelwright.cli.eval",
    "modelwright.graph", "modelwright.models", "modelwright.data", "modelwright.pipeline", "modelwright.report.model",
    "modelwright.report.build", "modelwright.diagnosis", "modelwright.evaluation", "modelwright.store",
)  # fmt: skip
HANG = "hang"


@dataclass(frozen=True)
class Job:
    """One command line. `scratch` is where its output goes and where it finds its temporary folder."""

    words: tuple[str, ...]
    cwd: str
    scratch: str
    env: dict[str, str] = field(default_factory=dict)
    timeout_s: float = 60.0


@dataclass(frozen=True)
class Answer:
    """How it ended: an exit code, 128 + n for signal n, or the word hang; and the most memory it held."""

    code: int | str
    out: str
    err: str
    peak_mb: int
    seconds: float


class Driver:
    """The test's side: hands jobs to the mother and starts another when one was lost."""

    def __init__(self) -> None:
        self._mother: subprocess.Popen[str] | None = None

    def run(self, job: Job) -> Answer:
        Path(job.scratch).mkdir(parents=True, exist_ok=True)
        mother = self._alive()
        assert mother.stdin is not None
        assert mother.stdout is not None
        mother.stdin.write(json.dumps(dataclasses.asdict(job)) + "\n")
        mother.stdin.flush()
        line = mother.stdout.readline()
        if not line:
            raise RuntimeError(f"the mother process ended with {mother.wait()}")
        ended = json.loads(line)
        out, err = (Path(job.scratch, name).read_bytes().decode(errors="replace") for name in ("out", "err"))
        return Answer(ended["code"], out, err, ended["peak_mb"], ended["seconds"])

    def close(self) -> None:
        if self._mother is not None:
            self._mother.communicate()
            self._mother = None

    def _alive(self) -> subprocess.Popen[str]:
        if self._mother is None or self._mother.poll() is not None:
            # BLAS threads do not survive a fork, so there must be none.
            env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONUNBUFFERED": ""}
            self._mother = subprocess.Popen(
                [sys.executable, str(Path(__file__).resolve())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=env,
            )
        return self._mother


def _serve() -> None:
    for name in PRELOAD:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    replies = os.fdopen(os.dup(1), "w")
    while line := sys.stdin.readline():
        job = Job(**json.loads(line))
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            replies.close()
            _become(job)
            return
        code, peak = _wait(child, job.timeout_s)
        reply = {"code": code, "peak_mb": peak, "seconds": time.monotonic() - started}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
    os._exit(0)


def _wait(child: int, timeout_s: float) -> tuple[int | str, int]:
    """In milliseconds where a fork would otherwise be noticed late; a hang ends the whole group."""
    handle = os.pidfd_open(child)
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    hangs = not waiting.poll(timeout_s * 1000)
    os.close(handle)
    if hangs:
        os.killpg(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return (HANG if hangs else code if code >= 0 else 128 - code), usage.ru_maxrss // 1024


def _become(job: Job) -> None:
    os.setsid()
    os.chdir(job.cwd)
    temporary = Path(job.scratch, "tmp")
    temporary.mkdir(exist_ok=True)
    os.environ.update({"TMPDIR": str(temporary), **job.env})
    os.environ.pop("OPENBLAS_NUM_THREADS", None)
    opened = [os.open(os.devnull, os.O_RDONLY)]
    opened += [os.open(Path(job.scratch, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for name in ("out", "err")]
    for number, file in enumerate(opened):
        os.dup2(file, number)
        os.close(file)
    sys.argv = ["wright", *job.words]


if __name__ == "__main__":
    _serve()
    # Only the fork comes here.
    from modelwright.cli import main

    sys.exit(main())
