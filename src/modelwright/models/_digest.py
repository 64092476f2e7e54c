"""The content of a model's files as one digest: of their bytes, never of what a name says about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from modelwright import store
from modelwright._json import digest
from modelwright.errors import InputError


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
        return store.file_digest(path)
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
