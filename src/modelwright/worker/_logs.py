"""Where the parent keeps the logs of its children, and how few it keeps."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from pathlib import Path

from modelwright import home

KEPT_LOGS = 40
KEPT_BYTES = 20 << 20
# A log this young may belong to a call that still runs in another process.
_YOUNG_S = 600
_numbers = itertools.count()


def new_log(task: str) -> Path:
    """A name no other call has, sorted by time. The file appears when there is something to say."""
    folder = home.logs_dir()
    # Work goes on without a log where none can be kept.
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    label = re.sub(r"[^A-Za-z0-9_]+", "-", task)[-60:].strip("-")
    return folder / f"{stamp}-{label}-{os.getpid()}-{next(_numbers)}.log"


def prune_logs() -> None:
    """Drop the oldest logs beyond a small count and size."""
    kept_bytes = 0
    for index, (modified, size, path) in enumerate(sorted(_existing(), reverse=True)):
        kept_bytes += size
        if (index >= KEPT_LOGS or kept_bytes > KEPT_BYTES) and time.time() - modified > _YOUNG_S:
            with contextlib.suppress(OSError):
                path.unlink()


def _existing() -> list[tuple[float, int, Path]]:
    found = []
    for path in home.logs_dir().glob("*.log"):
        # Another process may prune the same folder.
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            found.append((status.st_mtime, status.st_size, path))
    return found
