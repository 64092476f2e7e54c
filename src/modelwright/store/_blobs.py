"""Blobs: files named after their SHA-256, and the proof that they still are what their name says."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright.store import _fs
from modelwright.store._digests import SMALL
from modelwright.store._journal import Journal
from modelwright.store._key import DIGEST
from modelwright.store._stamp import stamp_of
from modelwright.store._types import CONTENT, blob_path


@dataclass(frozen=True)
class Staged:
    """A finished, flushed, read-only temp file, ready to be moved into place."""

    path: Path
    digest: str
    size: int


class Blobs:
    """Changes happen only inside `journal.write()`; see there why."""

    def __init__(self, root: Path, journal: Journal) -> None:
        self.folder = root / CONTENT
        self._quarantine = root / "quarantine"
        self._journal = journal
        self._seen: dict[str, str] = {}

    def path(self, digest: str) -> Path:
        return blob_path(self.folder, digest)

    def fault(self, digest: str, size: int, *, deep: bool = False) -> str | None:
        """Why this blob must not be served, or None. Only large untouched ones go without hashing."""
        try:
            before = stamp_of(self.path(digest))
            if before.size != size:
                return f"it has {before.size} bytes instead of {size}"
            if not deep and size > SMALL and before.proves and str(before) in self._known(digest):
                return None
            if _fs.hash_file(self.path(digest)) != digest:
                return "its content does not match its name"
        except FileNotFoundError:
            return "missing"
        if size > SMALL and stamp_of(self.path(digest)) == before:  # unless it changed meanwhile
            self.restamp(digest)
        return None

    def read(self, digest: str) -> bytes | None:
        """A small blob, checked in the same read. None if it is missing or wrong."""
        try:
            data = self.path(digest).read_bytes()
        except FileNotFoundError:
            return None
        return data if hashlib.sha256(data).hexdigest() == digest else None

    def place(self, staged: Staged) -> None:
        """Move a staged file into place; inside `journal.write()`."""
        target = self.path(staged.digest)
        if self.fault(staged.digest, staged.size) is None:
            _fs.unlink(staged.path)
        else:
            _fs.make_dir(target.parent)
            if target.exists():
                _fs.unlink(target)  # damaged, and Windows does not rename over a read-only file
            _fs.rename(staged.path, target)
            _fs.flush_dir(target.parent)
            self.restamp(staged.digest)

    def restamp(self, digest: str) -> None:
        """Note how the blob looks after a change that this store made itself."""
        stamp = stamp_of(self.path(digest))
        if stamp.size > SMALL:
            self._seen[digest] = str(stamp)
            self._journal.marks.note_stamp(digest, str(stamp))

    def remove_unneeded(self, digests: Iterable[str], held: set[str]) -> int:
        """Delete blobs that no entry and no live holder needs; inside `journal.write()`. Returns bytes."""
        freed = 0
        wanted = set(digests) - held
        for digest in sorted(wanted - self._journal.needed(wanted)):
            freed += self.bytes_of(digest)
            _fs.unlink(self.path(digest))
            self._journal.forget_blob(digest)
        return freed

    def discard(self, digest: str) -> int:
        """Delete a blob without a word to the journal. Returns the freed bytes."""
        freed = self.bytes_of(digest)
        _fs.unlink(self.path(digest))
        return freed

    def bytes_of(self, digest: str) -> int:
        """On disk now; 0 when it is not there."""
        try:
            return self.path(digest).stat().st_size
        except FileNotFoundError:
            return 0

    def quarantine(self, digest: str) -> None:
        """Move a wrong blob out of the way; inside `journal.write()`."""
        path = self.path(digest)
        if path.exists():
            _fs.rename(path, self._quarantine / digest)
        self._journal.forget_blob(digest)
        self._seen.pop(digest, None)

    def empty_quarantine(self) -> int:
        """Returns the freed bytes."""
        freed = 0
        for path in self._quarantine.iterdir():
            freed += path.stat().st_size
            _fs.unlink(path)
        return freed

    def quarantined_bytes(self) -> int:
        return sum(path.stat().st_size for path in self._quarantine.glob("*"))

    def on_disk(self) -> Iterator[str]:
        for folder in sorted(self.folder.glob("??")):
            yield from (name for name in os.listdir(folder) if DIGEST.fullmatch(name))  # noqa: PTH208 - names only

    def _known(self, digest: str) -> tuple[str, ...]:
        return tuple(stamp for stamp in (self._seen.get(digest), self._journal.marks.stamp(digest)) if stamp)
