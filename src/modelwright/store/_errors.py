"""Failures of the journal in plain words, with the next step. Those of the disk are in `modelwright._disk`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._disk import full_error, read_only_error, room_error
from modelwright._lazy import lazy
from modelwright.errors import StoreError

if TYPE_CHECKING:
    import sqlite3
else:
    sqlite3 = lazy("sqlite3")

DAMAGED = "journal.damaged"
"""A file of this name beside the journal: a query met damage, and the next opening rebuilds the journal."""


@contextlib.contextmanager
def journal_errors(where: Path, doing: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _from_sqlite(error, where, doing) from error


def _from_sqlite(error: sqlite3.Error, where: Path, doing: str) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return full_error(where, doing)
    if code == sqlite3.SQLITE_READONLY:
        return read_only_error(where, doing)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        with contextlib.suppress(OSError):
            (where / DAMAGED).touch()
        fix = "Run the same command again: the journal is rebuilt from the notes beside it."
        return StoreError(f"Could not {doing}: the journal is damaged", cause=str(error), fix=fix)
    if code == sqlite3.SQLITE_BUSY:
        fix = "Wait for the other command to finish, then run this one again."
        return StoreError(f"Could not {doing}", cause="another process kept the journal locked", fix=fix)
    fix = f"Check that the disk under {where} is healthy and not full, then run the same command again."
    return room_error(where, doing) or StoreError(f"Could not {doing}", cause=f"the journal answered: {error}", fix=fix)
