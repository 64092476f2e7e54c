"""Temporary folders, all made here. One that a killed process left goes when the next is made.

Beside each lies a lock file that its maker holds: the system lets go of it when the process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._disk import disk_errors
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import shutil
    import tempfile

    import filelock
else:
    filelock = lazy("filelock")
    shutil = lazy("shutil")
    tempfile = lazy("tempfile")

_LOCK = ".lock"
_held: dict[str, filelock.BaseFileLock] = {}


@contextlib.contextmanager
def scratch(purpose: str, inside: Path | None = None) -> Iterator[Path]:
    """A private folder, gone with the block."""
    folder = make_scratch(purpose, inside)
    try:
        yield folder
    finally:
        remove_scratch(folder)


def make_scratch(purpose: str, inside: Path | None = None) -> Path:
    """A private folder in `inside` (the system's place for such), until `remove_scratch` or the end of this process."""
    base = inside if inside is not None else Path(tempfile.gettempdir())
    with disk_errors(base, "make a temporary folder"):
        base.mkdir(parents=True, exist_ok=True)
        _sweep(base)
        folder = base / f"modelwright-{os.getpid()}-{purpose}-{os.urandom(6).hex()}"
        lock = filelock.FileLock(f"{folder}{_LOCK}", thread_local=False)
        with contextlib.suppress(OSError, NotImplementedError):  # a disk without locks: then nobody sweeps it
            lock.acquire()
            _held[str(folder)] = lock
        folder.mkdir(mode=0o700)
    return folder


def remove_scratch(folder: Path) -> None:
    """Clean-up hides no error: what resists stays for the next sweep."""
    shutil.rmtree(folder, ignore_errors=True)
    lock = _held.pop(str(folder), None)
    if lock is not None:
        _forget(folder, lock)


def _sweep(base: Path) -> None:
    """Remove what processes that are gone left behind. Files of other users cannot be opened, and stay."""
    for path in base.glob(f"modelwright-*{_LOCK}"):
        lock = filelock.FileLock(path, thread_local=False)
        with contextlib.suppress(OSError, NotImplementedError, filelock.Timeout):
            lock.acquire(timeout=0)
            folder = path.with_name(path.name.removesuffix(_LOCK))
            shutil.rmtree(folder, ignore_errors=True)
            _forget(folder, lock)


def _forget(folder: Path, lock: filelock.BaseFileLock) -> None:
    """While it is locked, so that nobody locks a file that is about to vanish; a folder that resists keeps its lock."""
    if not folder.exists():
        with contextlib.suppress(OSError):  # Windows keeps a file that is open
            Path(lock.lock_file).unlink()
    lock.release()
    if not folder.exists():
        Path(lock.lock_file).unlink(missing_ok=True)
