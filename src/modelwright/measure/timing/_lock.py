"""One measurement at a time on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import ExecutionError
from modelwright.home import machine_dir
from modelwright.vocabulary import OnProgress, Progress

if TYPE_CHECKING:
    import filelock
else:
    filelock = lazy("filelock")

_NAME = "modelwright-measure"


@contextmanager
def measurement_lock(purpose: str, *, wait: bool, on_progress: OnProgress) -> Iterator[None]:
    """Hold the machine against every user and every home on it; the operating system frees it when the process ends,
    however that happens."""
    lock = filelock.FileLock(machine_dir() / f"{_NAME}.lock", mode=0o666)
    try:
        _acquire(lock, wait, on_progress)
    except OSError as error:
        on_progress(Progress(f"other measurements cannot be kept away: {lock.lock_file}: {error.strerror or error}"))
        yield
        return
    try:
        with _told(purpose):
            yield
    finally:
        lock.release()


def _acquire(lock: filelock.BaseFileLock, wait: bool, on_progress: OnProgress) -> None:
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        if not wait:
            raise ExecutionError(
                "another measurement is running on this machine",
                cause=f"{_who()} holds it, and two at once would disturb each other",
                fix="wait for it to end, or let this one wait",
            ) from None
        on_progress(Progress(f"waiting: {_who()} is measuring on this machine"))
        lock.acquire()


@contextmanager
def _told(purpose: str) -> Iterator[None]:
    """Whom the others wait for. A file per user, because nobody may write another's file in a shared folder."""
    file = machine_dir() / f"{_NAME}.{_user()}.json"
    since = datetime.now(UTC).isoformat(timespec="seconds")
    with suppress(OSError):
        file.write_text(json.dumps({"pid": os.getpid(), "purpose": purpose, "since": since}), encoding="utf-8")
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink()


def _who() -> str:
    try:
        newest = max(machine_dir().glob(f"{_NAME}.*.json"), key=_written)
        told = json.loads(newest.read_text(encoding="utf-8"))
        return f"{told['purpose']} (process {told['pid']}, since {told['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _written(file: Path) -> float:
    return file.stat().st_mtime


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
