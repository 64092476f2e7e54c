"""The content of a model's files as one digest."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from modelwright._json import digest

_HASH_LENGTH = 64


def content_digest(files: Mapping[str, Path]) -> str:
    """SHA-256 over files: the name each is known by, and every byte."""
    return digest({name: _file_digest(path) for name, path in files.items()})


def folder_digest(folder: Path, names: Iterable[str]) -> str:
    """SHA-256 over the named files of a folder."""
    return content_digest({name: folder / name for name in names})


def _file_digest(path: Path) -> str:
    """A file in the Hub's own cache is a link to a blob that is named after its SHA-256."""
    real = path.resolve()
    if path.is_symlink() and real.parent.name == "blobs" and _is_hash(real.name):
        return real.name
    stat = real.stat()
    return _hash(str(real), stat.st_size, stat.st_mtime_ns, stat.st_ino)


@functools.lru_cache(maxsize=1024)
def _hash(path: str, size: int, changed: int, inode: int) -> str:
    """Once per process for an unchanged file; the arguments after the first are what "unchanged" means."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_hash(name: str) -> bool:
    return len(name) == _HASH_LENGTH and all(letter in "0123456789abcdef" for letter in name)
