"""What is worth noting on a hit but not worth waiting for the disk: uses of entries, looks of large blobs.

Small files that are never flushed. One that is lost, torn or stale costs a re-hash or an early collection,
never a wrong answer. So a hit leaves the journal alone, and takes the same time on a slow disk.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from modelwright.store import _fs

_WIDTH = 128


class Marks:
    def __init__(self, root: Path, *, read_only: bool = False) -> None:
        self._folder = root / "marks"
        self._read_only = read_only

    def touch(self, key: str) -> None:
        """The entry was used now. Quietly nothing where nothing can be written."""
        if self._read_only:
            return
        with contextlib.suppress(OSError):
            _fs.step("mark a use")
            (self._folder / key).touch()

    def used(self, key: str) -> float:
        """When the entry was last used, in seconds; 0 if that is not known."""
        try:
            return (self._folder / key).stat().st_mtime
        except OSError:
            return 0.0

    def uses(self) -> dict[str, float]:
        """All of them at once: one look at the folder instead of one at each entry."""
        with contextlib.suppress(OSError), os.scandir(self._folder) as found:
            return {mark.name: mark.stat().st_mtime for mark in found}
        return {}

    def note_stamp(self, digest: str, stamp: str) -> None:
        """The large blob looked like this when its content was right."""
        if self._read_only:
            return
        with contextlib.suppress(OSError):
            _fs.overwrite(self._folder / digest, stamp.ljust(_WIDTH).encode())

    def stamp(self, digest: str) -> str | None:
        try:
            return (self._folder / digest).read_bytes().decode().rstrip()
        except (OSError, UnicodeDecodeError):
            return None

    def sweep(self, keep: set[str]) -> None:
        """Forget everything about entries and blobs that are gone."""
        for path in self._folder.iterdir():
            if path.name not in keep:
                _fs.unlink(path)
