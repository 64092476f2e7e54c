"""Digests of large files that were read before, in one small table of our home.

The table only saves time: without it, or when two processes write at once and one entry is lost, a file is read again.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from modelwright import home

_FILE = "digests.json"
_MOST = 1000


class Stamp(NamedTuple):
    """What stays the same while a file does. On Windows `changed` is when it was made."""

    size: int
    modified: int
    changed: int
    inode: int


def recall(path: str, stamp: Stamp) -> str | None:
    """The digest this file had, if nothing happened to it since."""
    entry = _table().get(path)
    if not isinstance(entry, list) or entry[:-1] != list(stamp) or not isinstance(entry[-1], str):
        return None
    return entry[-1]


def remember(path: str, stamp: Stamp, found: str) -> None:
    table = _table()
    table.pop(path, None)
    newest = dict([*table.items(), (path, [*stamp, found])][-_MOST:])
    # A home that cannot be written costs time, not an answer.
    with contextlib.suppress(OSError):
        _replace(home.home() / _FILE, json.dumps(newest))


def _table() -> dict[str, Any]:
    try:
        found = json.loads((home.home() / _FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
