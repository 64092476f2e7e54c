"""What a child has found so far, in a file: the parent has it when the work is interrupted, or when the child dies."""

from __future__ import annotations

import contextlib
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# A snapshot is taken only when the work since the last one took this many times as long as that did.
_WORK_PER_SNAPSHOT = 19


class SoFar:
    """The child's side: offer a snapshot after every step, and it is taken as often as costs a twentieth at most."""

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else Path(path)
        self._next = 0.0

    def offer(self, snapshot: Callable[[], object]) -> None:
        began = time.monotonic()
        if self._path is None or began < self._next:
            return
        # A metric may need more samples than there are yet; and a full disk ends no evaluation.
        with contextlib.suppress(Exception):
            draft = self._path.with_suffix(".draft")
            draft.write_bytes(pickle.dumps(snapshot()))
            draft.replace(self._path)
        now = time.monotonic()
        self._next = now + _WORK_PER_SNAPSHOT * (now - began)


def read_so_far(path: Path) -> Any | None:
    """The parent's side: the last snapshot, or None."""
    try:
        return pickle.loads(path.read_bytes())
    except (OSError, EOFError, pickle.UnpicklingError):
        return None
