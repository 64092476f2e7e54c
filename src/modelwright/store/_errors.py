"""Failures of the disk and of the journal in plain words, with the next step."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import StoreError
from modelwright.home import HOME_VARIABLE

if TYPE_CHECKING:
    import shutil
    import sqlite3
else:
    shutil = lazy("shutil")
    sqlite3 = lazy("sqlite3")

FULL = (errno.ENOSPC, errno.EDQUOT) if hasattr(errno, "EDQUOT") else (errno.ENOSPC,)
_NOTHING = 1 << 16
DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextlib.contextmanager
def disk_errors(where: Path, doing: str) -> Iterator[None]:
    """Turn an OSError into a StoreError that says what to do."""
    try:
        yield
    except OSError as error:
        raise _from_os(error, where, doing) from error


@contextlib.contextmanager
def full_disk_errors(where: Path, doing: str) -> Iterator[None]:
    """The same for a full disk only: other errors belong to the code that runs inside."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise _from_os(error, where, doing) from error


@contextlib.contextmanager
def journal_errors(where: Path, doing: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _from_sqlite(error, where, doing) from error


def read_only_error(where: Path, doing: str) -> StoreError:
    if _free_bytes(where) < _NOTHING:
        return _full(where, doing)
    return StoreError(f"Could not {doing}", cause=f"{where} cannot be written by this user", fix=_fix_access())


def _from_os(error: OSError, where: Path, doing: str) -> StoreError:
    if error.errno in FULL:
        return _full(where, doing)
    if error.errno in DENIED:
        blocked = error.filename or where
        return StoreError(f"Could not {doing}", cause=f"{error.strerror or error} at {blocked}", fix=_fix_access())
    if error.errno == errno.EIO:
        fix = "Check the disk, then run `wright cache verify`; damaged entries are rebuilt when next needed."
        return StoreError(f"Could not {doing}", cause=f"the disk under {where} reported an error", fix=fix)
    fix = f"Check that {where} exists and is healthy, then run the same command again."
    return StoreError(f"Could not {doing}", cause=str(error), fix=fix)


def _from_sqlite(error: sqlite3.Error, where: Path, doing: str) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return _full(where, doing)
    if code == sqlite3.SQLITE_READONLY:
        return read_only_error(where, doing)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        fix = f"Delete the folder {where}: everything in it can be made again."
        return StoreError(f"Could not {doing}: the journal is damaged", cause=str(error), fix=fix)
    if code == sqlite3.SQLITE_BUSY:
        fix = "Wait for the other command to finish, then run this one again."
        return StoreError(f"Could not {doing}", cause="another process kept the journal locked", fix=fix)
    fix = f"Check that the disk under {where} is healthy and not full, then run the same command again."
    return StoreError(f"Could not {doing}", cause=f"the journal answered: {error}", fix=fix)


def _full(where: Path, doing: str) -> StoreError:
    fix = f"Free space there (try `wright cache prune`) or use another disk ({HOME_VARIABLE} moves the store)."
    return StoreError(f"Could not {doing}: the disk is full", cause=f"{_free(where)} free at {where}", fix=fix)


def _fix_access() -> str:
    return f"Ask for write access, or use a folder that you can write ({HOME_VARIABLE} moves the store)."


def _free_bytes(where: Path) -> int:
    while not where.exists() and where != where.parent:
        where = where.parent
    return shutil.disk_usage(where).free


def _free(where: Path) -> str:
    free = _free_bytes(where)
    return f"{free / 1e6:.1f} MB" if free < 1e9 else f"{free / 1e9:.1f} GB"
