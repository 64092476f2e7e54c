"""Digests of files outside of the store. Those of large files are remembered between commands."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

from modelwright import home
from modelwright.store import _fs
from modelwright.store._key import DIGEST
from modelwright.store._stamp import Stamp, stamp_of

SMALL = 8 << 20
"""Up to here content is always hashed; above, an unchanged stamp stands for it."""

_SETTLED_NS = 2 * 10**9
"""A file changed again within the tick of its clock would look the same, so a fresh one is not remembered."""
_FAT_TICK_NS = 10**7
_WIDTH = 192
_MOST = 1000

_seen: dict[str, str] = {}
_writes: ContextVar[bool] = ContextVar("digests are written down", default=True)


@contextlib.contextmanager
def unwritten() -> Iterator[None]:
    """Digests found inside are remembered by this process only."""
    before = _writes.set(False)
    try:
        yield
    finally:
        _writes.reset(before)


def remembers() -> bool:
    return _writes.get()


def file_digest(path: Path) -> str:
    """SHA-256 of all bytes of a file, in hex. A large one that was not touched since is not read again."""
    before = stamp_of(path)
    if before.size <= SMALL or not _has_change_time(before):
        return _fs.hash_file(path)
    known = known_digest(path, before)
    if known is not None:
        return known
    digest = _fs.hash_file(path)
    if stamp_of(path) == before and _settled(before):
        _remember(str(path.resolve()), f"{before} {digest}")
    return digest


def known_digest(path: Path, now: Stamp) -> str | None:
    """The digest of a large file that looks as it did when it was last hashed; None where it has to be hashed."""
    if now.size <= SMALL or not _has_change_time(now):
        return None
    real = str(path.resolve())
    stamp, _, known = (_seen.get(real) or _recall(real)).partition(" ")
    return known if stamp == str(now) and DIGEST.fullmatch(known) else None


def remember(path: Path, digest: str, sealed: Stamp) -> None:
    """What a file holds that was written and sealed just now (`sealed` is how it looked then), wherever it was moved.

    Nothing has to settle: whoever writes to it later makes its last write as late as its last change.
    """
    now = stamp_of(path)
    unwritten_since = (now.size, now.modified, now.inode) == (sealed.size, sealed.modified, sealed.inode)
    if now.size > SMALL and now.proves and unwritten_since:
        _remember(str(path.resolve()), f"{now} {digest}")


def _has_change_time(stamp: Stamp) -> bool:
    """Others do not seal what they write, so both times may well be one; but then with more digits than FAT has."""
    return stamp.proves or (stamp.changed == stamp.modified and stamp.modified % _FAT_TICK_NS != 0)


def _settled(stamp: Stamp) -> bool:
    return stamp.changed is not None and time.time_ns() - stamp.changed > _SETTLED_NS


def _note(real: str) -> Path:
    return home.home() / "digests" / hashlib.sha256(os.fsencode(real)).hexdigest()[:32]


def _recall(real: str) -> str:
    try:
        return _note(real).read_bytes().decode().rstrip()
    except (OSError, UnicodeDecodeError):
        return ""


def _remember(real: str, text: str) -> None:
    """Quietly nothing where nothing can be written: then the file is hashed again the next time."""
    _seen[real] = text
    if not _writes.get():
        return
    note = _note(real)
    with contextlib.suppress(OSError):
        _fs.make_dir(note.parent)
        _fs.overwrite(note, text.ljust(_WIDTH).encode())
        _forget_oldest(note.parent)


def _forget_oldest(folder: Path) -> None:
    notes = list(folder.iterdir())
    if len(notes) > _MOST:
        for note in sorted(notes, key=lambda item: item.stat().st_mtime)[: _MOST // 2]:
            note.unlink()
