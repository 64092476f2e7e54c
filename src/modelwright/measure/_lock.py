"""One measurement at a time on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import ExecutionError
from modelwright.home import home

if TYPE_CHECKING:
    import filelock
else:
    filelock = lazy("filelock")

Note = Callable[[str], None]


@contextmanager
def measurement_lock(purpose: str, *, wait: bool, note: Note) -> Iterator[None]:
    """Hold the machine; the operating system frees it when the process ends, however that happens."""
    folder = home() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    holder = folder / "measure.json"
    lock = filelock.FileLock(folder / "measure.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        if not wait:
            raise ExecutionError(
                "another measurement is running on this machine",
                cause=f"{_who(holder)} holds it, and two at once would disturb each other",
                fix="wait for it, or leave out --no-wait",
            ) from None
        note(f"waiting: {_who(holder)} is measuring on this machine")
        lock.acquire()
    try:
        since = datetime.now(UTC).isoformat(timespec="seconds")
        holder.write_text(json.dumps({"pid": os.getpid(), "purpose": purpose, "since": since}), encoding="utf-8")
        yield
    finally:
        with suppress(OSError):
            holder.unlink()
        lock.release()


def _who(holder: Path) -> str:
    try:
        told = json.loads(holder.read_text(encoding="utf-8"))
        return f"{told['purpose']} (process {told['pid']}, since {told['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
