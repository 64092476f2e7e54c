"""Locks whose file goes with them: one for each stage and each folder would be thousands that nobody looks at again."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from modelwright._lazy import lazy

if TYPE_CHECKING:
    import filelock
else:
    filelock = lazy("filelock")


class PassingLock:
    """Held by one at a time, of all threads and processes that lock the path this way.

    Who is done removes the file and lets go. Whoever waited for it has then locked a file that nobody else can find,
    notices, and begins again with the one that is there now.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = filelock.FileLock(path, thread_local=False)

    def acquire(self, timeout: float = -1) -> bool:
        """False when it was not free in time; a negative time is as long as it takes."""
        end = time.monotonic() + timeout
        while True:
            try:
                self._lock.acquire(timeout=timeout if timeout <= 0 else max(0.0, end - time.monotonic()))
            except filelock.Timeout:
                return False
            if self._is_there():
                return True
            self._lock.release()

    def release(self) -> None:
        with contextlib.suppress(OSError):  # Windows keeps a file that is open; there it goes with the lock
            self._path.unlink()
        self._lock.release()

    def _is_there(self) -> bool:
        """Is what we locked still what the path names?"""
        opened = self._lock._context.lock_file_fd
        try:
            return opened is not None and os.path.samestat(os.fstat(opened), self._path.stat())
        except FileNotFoundError:
            return False

    def __enter__(self) -> PassingLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
