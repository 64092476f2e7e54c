"""What a disk refuses, in plain words, with the next step. Every room names these failures the same way."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import NoRoomError, StoreError
from modelwright.home import HOME_VARIABLE

if TYPE_CHECKING:
    import shutil
    import tempfile
else:
    shutil = lazy("shutil")
    tempfile = lazy("tempfile")

FULL = (errno.ENOSPC, errno.EDQUOT) if hasattr(errno, "EDQUOT") else (errno.ENOSPC,)
TOO_LARGE = errno.EFBIG
DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
_NOTHING = 1 << 16


@contextlib.contextmanager
def disk_errors(where: Path, doing: str) -> Iterator[None]:
    """Turn an OSError into a StoreError that says what to do."""
    try:
        yield
    except OSError as error:
        raise disk_error(error, where, doing) from error


@contextlib.contextmanager
def room_errors(where: Path, doing: str) -> Iterator[None]:
    """The same for a lack of room only: other errors belong to the code that runs inside."""
    try:
        yield
    except OSError as error:
        if not lacks_room(error):
            raise
        raise disk_error(error, where, doing) from error


@contextlib.contextmanager
def native_writes(where: Path, doing: str) -> Iterator[None]:
    """Native code writes inside and seldom says what the system answered: if it fails on a full disk, that is why."""
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        if not is_full(where):
            raise
        raise full_error(where, doing) from error


def is_full(where: Path) -> bool:
    """Is nothing left where we may write? A read-only disk has no room either, and is not meant."""
    return os.access(where, os.W_OK) and _free_bytes(where) < _NOTHING


def lacks_room(error: OSError) -> bool:
    """A full disk, a used-up quota, or a file longer than this process may write."""
    return error.errno in FULL or error.errno == TOO_LARGE


def disk_error(error: OSError, where: Path, doing: str) -> StoreError:
    """The one place where the system's numbers become words."""
    if error.errno in FULL:
        return full_error(where, doing)
    if error.errno == TOO_LARGE:
        return _too_large(where, doing)
    if error.errno in DENIED:
        blocked = error.filename or where
        return StoreError(f"Could not {doing}", cause=f"{error.strerror or error} at {blocked}", fix=_fix_access())
    if error.errno == errno.EIO:
        fix = "Check the disk, then run `wright cache verify`; damaged entries are rebuilt when next needed."
        return StoreError(f"Could not {doing}", cause=f"the disk under {where} reported an error", fix=fix)
    fix = f"Check that {where} exists and is healthy, then run the same command again."
    return StoreError(f"Could not {doing}", cause=str(error), fix=fix)


def read_only_error(where: Path, doing: str) -> StoreError:
    """Why a place that was found to be read-only is that."""
    cause = f"{where} cannot be written by this user"
    return room_error(where, doing) or StoreError(f"Could not {doing}", cause=cause, fix=_fix_access())


def room_error(where: Path, doing: str) -> StoreError | None:
    """Whether there is no room at a place, by trying: free bytes do not tell of quotas and limits."""
    try:
        with tempfile.TemporaryFile(dir=where) as file:
            file.write(bytes(_NOTHING))
    except OSError as error:
        return disk_error(error, where, doing) if lacks_room(error) else None
    return None


def full_error(where: Path, doing: str) -> NoRoomError:
    fix = (
        "Free space there (`wright cache prune --budget 0` removes all that can be made again) or use another disk "
        f"({HOME_VARIABLE} moves the store, TMPDIR temporary files)."
    )
    return NoRoomError(f"Could not {doing}: the disk is full", cause=f"{_free(where)} free at {where}", fix=fix)


def _free_bytes(where: Path) -> int:
    while not where.exists() and where != where.parent:
        where = where.parent
    return shutil.disk_usage(where).free


def _too_large(where: Path, doing: str) -> StoreError:
    return StoreError(
        f"Could not {doing}: a file would get too long",
        cause=f"this process may not write a file of that size (ulimit -f), or the disk under {where} cannot hold one",
        fix=f"Raise the limit (ulimit -f unlimited) or use another disk ({HOME_VARIABLE} moves the store).",
    )


def _fix_access() -> str:
    return f"Ask for write access, or use a folder that you can write ({HOME_VARIABLE} moves the store)."


def _free(where: Path) -> str:
    free = _free_bytes(where)
    return f"{free / 1e6:.1f} MB" if free < 1e9 else f"{free / 1e9:.1f} GB"
