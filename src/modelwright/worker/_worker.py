"""Run a marked function in a child process: once, or many times in the same warm one."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from modelwright._disk import full_error, is_full
from modelwright.errors import InputError, StoreError, WrightError
from modelwright.vocabulary import OnProgress
from modelwright.worker._exit import decode_exit
from modelwright.worker._inspect import get_ready
from modelwright.worker._launch import Child, launch
from modelwright.worker._limits import STALL_S, Limits, resolve_limits, shared_cpus
from modelwright.worker._logs import new_log, prune_logs
from modelwright.worker._messages import Begin, Call, Died, Done, Inside, Kill
from modelwright.worker._payload import pack, unpack
from modelwright.worker._result import CallResult, Failure, FailureKind
from modelwright.worker._runtime import Runtime
from modelwright.worker._task import Task
from modelwright.worker._watch import CallOutcome, CallWatch

T = TypeVar("T")


def run(
    task: Task[T],
    *,
    runtime: Runtime | None = None,
    timeout: float,
    size: int | None = None,
    stall: float | None = STALL_S,
    memory_limit: int | None = None,
    on_progress: OnProgress | None = None,
) -> CallResult[T]:
    """Make one call in a child of its own. See `Worker.run`."""
    with Worker(runtime=runtime) as worker:
        return worker.run(
            task, timeout=timeout, size=size, stall=stall, memory_limit=memory_limit, on_progress=on_progress
        )


class Worker:
    """A warm child for many calls. After a crash or a time-out the next call gets a new one.

    Calls from several threads take turns. Closing ends everything the tasks started, without teardown.
    """

    def __init__(self, *, runtime: Runtime | None = None) -> None:
        self._runtime = runtime
        self._child: Child | None = None
        self._turn = threading.Lock()
        self._numbers = itertools.count(1)

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the child and all its descendants; idempotent."""
        with self._turn:
            self._discard()

    def interrupt(self) -> None:
        """End the call that another thread waits for: it fails there as a crash."""
        child = self._child
        if child is not None:
            with contextlib.suppress(OSError):  # it is going already
                child.control.send(Kill())

    def get_ready(self, task: Task[Any], modules: tuple[str, ...], timeout: float) -> None:
        """Start the child and import what this task and its libraries are, so that its call begins at once.

        What goes wrong here goes wrong in that call too, where somebody looks at it.
        """
        self.run(replace(get_ready.call(task.name, modules), root=task.root), timeout=timeout)

    def run(
        self,
        task: Task[T],
        *,
        timeout: float,
        planned: float = 0.0,
        size: int | None = None,
        stall: float | None = STALL_S,
        memory_limit: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> CallResult[T]:
        """Make the call. It fails `timeout` seconds (beyond the `planned` ones) after it last reported progress, after
        `stall` seconds without progress, output or CPU time, or when the tree holds more than `memory_limit` bytes.

        `size` is what it works on, in bytes: more of it gets more time, and the memory that is fair for it. What
        `limited` says goes before all of them, and its time is for the whole call.
        """
        limits = resolve_limits(timeout, planned, stall, memory_limit, size)
        with self._turn:
            started = time.monotonic()
            try:
                return self._run(task, limits, on_progress, started)
            except BaseException:
                # Ctrl-C, or an on_progress that raises: nobody waits for the child any more.
                self._discard()
                raise

    def _run(self, task: Task[T], limits: Limits, on_progress: OnProgress | None, started: float) -> CallResult[T]:
        log = new_log(task.name)
        try:
            child = self._child = self._child or self._start()
        except OSError as error:
            failure = Failure("crash", f"{self._python()} could not be started: {error.strerror or error}")
            return _failed(task.name, failure, None, log, started)
        number = next(self._numbers)
        arguments = pack((task.args, dict(task.kwargs)), child.scratch)
        child.control.send(Begin(str(log), limits.memory))
        root = None if self._runtime else task.root
        child.data.send(Call(number, task.name, root, arguments, task.folder, limits.timeout, shared_cpus()))
        outcome = CallWatch(child, number, limits, on_progress).wait()
        return self._settle(task, child, outcome, log, started, limits)

    def _settle(
        self, task: Task[Any], child: Child, outcome: CallOutcome, log: Path, started: float, limits: Limits
    ) -> CallResult[Any]:
        done, name = outcome.done, task.name
        try:
            if done is None:
                failure = _death(child, outcome, limits, time.monotonic() - started)
                failure = _on_full_disk(_blamed(failure, outcome.inside, log), task)
                return _failed(name, failure, _died_usage(child, outcome.died), log, started)
            child.cpu_total_s = done.cpu_total_s
            usage = (done.cpu_s, done.peak_rss_bytes)
            if done.failure is not None:
                return _failed(name, _on_full_disk(_with_error(done), task), usage, log, started)
            value = None if done.value is None else unpack(done.value)
            kept = log if outcome.log_bytes and log.exists() else None
            return CallResult(name, value, None, time.monotonic() - started, *usage, kept)
        finally:
            if done is None or outcome.died is not None:
                self._discard()

    def _python(self) -> Path:
        return self._runtime.python if self._runtime else Path(sys.executable)

    def _start(self) -> Child:
        prune_logs()
        return launch(self._python())

    def _discard(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.close()


def _failed(
    name: str, failure: Failure, usage: tuple[float | None, int | None] | None, log: Path, started: float
) -> CallResult[Any]:
    cpu_s, peak = usage or (None, None)
    duration = time.monotonic() - started
    text = f"[modelwright: {name} failed after {duration:.1f} s: {failure.kind}: {failure.message}]\n"
    # The result must arrive even where the log cannot be written.
    kept = None
    with contextlib.suppress(OSError):
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{failure.traceback or ''}{text}")
        kept = log
    return CallResult(name, None, failure, duration, cpu_s, peak, kept)


def _died_usage(child: Child, died: Died | None) -> tuple[float | None, int | None] | None:
    """What the last call used: the supervisor counted the child's whole life."""
    if died is None:
        return None
    cpu_s = None if died.cpu_s is None else max(0.0, died.cpu_s - child.cpu_total_s)
    return cpu_s, died.peak_rss_bytes


def _death(child: Child, outcome: CallOutcome, limits: Limits, duration: float) -> Failure:
    """The failure of a call that gave no answer."""
    died = outcome.died
    left = f"; {died.survivors} process(es) could not be killed" if died and died.survivors else ""
    if outcome.reached == "timeout":
        since = "" if limits.whole else " without progress"
        return Failure("timeout", f"no result after {duration:.1f} s (limit {limits.timeout:g} s{since}){left}")
    if outcome.reached == "stalled":
        return Failure("stalled", f"no progress, output or CPU time for {limits.stall:g} s{left}")
    if died is None or died.code is None:
        complaint = child.complaint()
        cannot_import = complaint.startswith(("ImportError", "ModuleNotFoundError"))
        kind: FailureKind = "import_error" if cannot_import else "crash"
        return Failure(kind, f"the worker process could not work: {complaint or 'it was killed'}{left}")
    if died.killed_for == "memory_limit":
        used = f"it held {_megabytes(died.held_bytes)}, " if died.held_bytes else "it used "
        return Failure("oom", f"{used}more than its limit of {_megabytes(limits.memory)}")
    return _crash(died, died.code)


def _megabytes(count: int | None) -> str:
    return f"{(count or 0) / 1e6:,.0f} MB"


def _blamed(failure: Failure, inside: Inside | None, log: Path) -> Failure:
    """A child that ended inside the user's own code is no fault of a native library."""
    if inside is None or inside.what is None:
        return failure
    error = InputError(f"{inside.what} failed", cause=failure.message, fix=f"{inside.fix} Its last words are in {log}")
    return replace(failure, error=error)


def _crash(died: Died, code: int) -> Failure:
    end = decode_exit(code)
    if died.oom_evidence is not None:
        return Failure("oom", f"killed for lack of memory: {died.oom_evidence}", end.signal, None, end.name)
    words = f"{end.words} before it gave a result"
    if end.name == "SIGKILL":
        words = f"{end.words}; it may have been the kernel for lack of memory, but its counters do not say so"
    kind: FailureKind = "oom" if end.name == "NO_MEMORY" else "crash"
    return Failure(kind, words, end.signal, end.exit_code, end.name)


def _on_full_disk(failure: Failure, task: Task[Any]) -> Failure:
    """Native code that could not write fails in its own words, or dies."""
    if task.folder is None or isinstance(failure.error, StoreError) or not is_full(Path(task.folder)):
        return failure
    return replace(failure, error=full_error(Path(task.folder), f"finish {task.name.rpartition(':')[2]}"))


def _with_error(done: Done) -> Failure:
    """The failure as the child saw it, with its WrightError when the class is known here too."""
    assert done.failure is not None
    if done.error is None:
        return done.failure
    try:
        error = pickle.loads(done.error)
    except Exception:  # noqa: BLE001 the class may not import here, or not rebuild; its text is in the failure
        return done.failure
    if not isinstance(error, WrightError):
        return done.failure
    return Failure("raised", done.failure.message, error=error, traceback=done.failure.traceback)
