"""What a child has found so far, in a file: the parent has it when the work is interrupted, or when the child dies."""

from __future__ import annotations

import contextlib
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Snapshots take a twentieth of the time, or a tenth where more than a second of work would be lost otherwise.
_CHEAP, _DEAR = 19, 9
_LOST_S = 1.0


class SoFar:
    """The child's side: offer a snapshot after every step, and it is taken as often as it is worth."""

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else Path(path)
        self._next = 0.0
        self._before_s = 0.0

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
        # One that took long alone, because it imported something, says nothing about the next.
        cost, self._before_s = min(now - began, self._before_s), now - began
        self._next = now + min(_CHEAP * cost, max(_LOST_S, _DEAR * cost))


def read_so_far(path: Path) -> Any | None:
    """The parent's side: the last snapshot, or None."""
    try:
        return pickle.loads(path.read_bytes())
    except (OSError, EOFError, pickle.UnpicklingError):
        return None
