"""Every change the store makes to a disk, as a named step: a test can stop a process before any of them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.store._clone import clone

if TYPE_CHECKING:
    import shutil
else:
    shutil = lazy("shutil")

CHUNK = 1 << 20
READ_ONLY = 0o444
WRITABLE = 0o644

hook: Callable[[str], None] | None = None
"""Fault injection: called with the name of the step that comes next. None in production."""


def step(name: str) -> None:
    if hook is not None:
        hook(name)


def make_dir(path: Path) -> None:
    if not path.is_dir():
        step(f"make folder {path.name}")
        path.mkdir(parents=True, exist_ok=True)


def hash_file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_file(path: Path, data: bytes) -> None:
    step(f"write {path.name}")
    path.write_bytes(data)


def overwrite(path: Path, data: bytes) -> None:
    """Write a note of fixed length in place, without truncation: some disks flush a file emptied before."""
    step(f"note {path.name}")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), WRITABLE)
    try:
        os.write(handle, data)
    finally:
        os.close(handle)


def copy(source: Path, target: Path) -> None:
    """A clone where the disk can, else a copy that the kernel makes."""
    step(f"clone to {target.name}")
    if not clone(source, target):
        step(f"write into {target.name}")
        shutil.copyfile(source, target)


def copy_hashed(source: Path, target: Path) -> str:
    """Copy (as a clone where the disk can) and return the SHA-256 of what was written."""
    step(f"clone to {target.name}")
    if clone(source, target):
        return hash_file(target)
    seen = hashlib.sha256()
    with source.open("rb") as reader, target.open("wb") as writer:
        while chunk := reader.read(CHUNK):
            step(f"write into {target.name}")
            writer.write(chunk)
            seen.update(chunk)
    return seen.hexdigest()


def chmod(path: Path, mode: int) -> None:
    step(f"chmod {path.name}")
    path.chmod(mode)


def flush_file(path: Path) -> None:
    """fsync; the file must be writable, because Windows flushes only through a writable handle."""
    step(f"fsync {path.name}")
    with path.open("r+b") as stream:
        os.fsync(stream.fileno())


def flush_dir(path: Path) -> None:
    if os.name == "nt":  # Windows has no handle for a folder to flush; NTFS journals the rename itself
        return
    step(f"fsync folder {path.name}")
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def rename(source: Path, target: Path) -> None:
    step(f"rename to {target.name}")
    source.replace(target)


def link(source: Path, target: Path) -> None:
    step(f"link {target.name}")
    target.hardlink_to(source)


def unlink(path: Path) -> None:
    step(f"unlink {path.name}")
    try:
        path.unlink(missing_ok=True)
    except PermissionError:
        path.chmod(stat.S_IWRITE | stat.S_IREAD)  # Windows keeps read-only files
        path.unlink(missing_ok=True)


def remove_tree(path: Path) -> None:
    """Remove a folder of ours. What resists waits for the next sweep: clean-up hides no error."""
    with contextlib.suppress(OSError):
        if path.is_symlink():
            unlink(path)
        elif path.exists():
            step(f"remove {path.name}")
            shutil.rmtree(path, ignore_errors=True)
            if path.exists():
                _open_up(path)
                shutil.rmtree(path, ignore_errors=True)


def remove_empty(base: Path, name: str) -> None:
    """Remove the folders between `base` and what was `name`, as far as nothing is left in them."""
    folder = (base / name).parent
    while folder != base and not any(folder.iterdir()):
        step(f"remove {folder.name}")
        folder.rmdir()
        folder = folder.parent


def _open_up(folder: Path) -> None:
    """A producer may leave read-only folders, and Windows keeps read-only files."""
    folder.chmod(stat.S_IRWXU)
    for place, folders, files in os.walk(folder):
        for name in folders + (files if os.name == "nt" else []):
            path = Path(place, name)
            if not path.is_symlink():
                path.chmod(stat.S_IRWXU)
