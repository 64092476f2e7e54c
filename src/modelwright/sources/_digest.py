"""The content of a model's files as one digest: of their bytes, never of what a name says about them."""

from __future__ import annotations

import functools
import hashlib
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from modelwright._json import digest
from modelwright.errors import InputError
from modelwright.sources._stamps import Stamp, recall, remember

# Hashing less than this takes no longer than looking it up.
_WORTH_REMEMBERING = 4 * 2**20
# A file that changed just now may change again within the same tick of its clock.
_SETTLED_NS = 2_000_000_000


def content_digest(files: Mapping[str, Path]) -> str:
    """SHA-256 over files: the name each is known by, and every byte."""
    return digest({name: file_digest(path) for name, path in files.items()})


def folder_digest(folder: Path, names: Iterable[str]) -> str:
    """SHA-256 over the named files of a folder."""
    return content_digest({name: folder / name for name in names})


def file_digest(path: Path) -> str:
    """SHA-256 of the bytes. A large file that has not changed since is not read again, also by another process."""
    require_file(path)
    try:
        real = os.path.realpath(path)
        return _hash(real, _stamp(os.stat(real)))  # noqa: PTH116 - realpath is a string
    except OSError as error:
        raise InputError(
            f"{path} cannot be read", cause=error.strerror or type(error).__name__, fix="Check the path."
        ) from error


def require_file(path: Path) -> None:
    """Opening a pipe would wait for whoever writes to it. What is missing or a folder is said when it is opened."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(
            f"{path} is not a file", cause="it is a pipe, a device or a socket", fix="Give a regular file."
        )


@functools.lru_cache(maxsize=1024)
def _hash(path: str, stamp: Stamp) -> str:
    large = stamp.size >= _WORTH_REMEMBERING
    known = recall(path, stamp) if large else None
    if known is not None:
        return known
    with Path(path).open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        unchanged = _stamp(os.fstat(file.fileno())) == stamp
    if large and unchanged and max(stamp.modified, stamp.changed) < time.time_ns() - _SETTLED_NS:
        remember(path, stamp, found)
    return found


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
