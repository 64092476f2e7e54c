"""One process at work in the store: its journal, its temp folder, its holds, and the proof it is alive."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._disk import disk_errors
from modelwright._lazy import lazy
from modelwright.errors import StoreError
from modelwright.store import _fs
from modelwright.store._blobs import Blobs
from modelwright.store._journal import Journal
from modelwright.store._schema import FILE as JOURNAL

if TYPE_CHECKING:
    import socket

    import filelock
else:
    filelock = lazy("filelock")
    socket = lazy("socket")


_IDLE_S = 86400.0
_PASSING = "open-"


class Session:
    """An owner token with a locked file. The system unlocks it when the process ends, however it ends."""

    def __init__(self, root: Path, *, read_only: bool = False) -> None:
        self.root = root
        self.pid = os.getpid()
        self.journal = Journal(root, read_only=read_only)
        self.blobs = Blobs(root, self.journal)
        self._guard = threading.Lock()
        self._token: str | None = None
        self._alive: filelock.BaseFileLock | None = None
        if not self.journal.read_only:
            self.sweep_dead()

    def close(self) -> None:
        """Leave nothing behind. A forked copy of this session is not ours to end."""
        if self.pid != os.getpid():
            return
        if self._alive is not None and self._token is not None:
            with contextlib.suppress(StoreError):  # the next opening sweeps what stays
                self._bury(self._token)
            self._alive.release()
        self.journal.close()

    def token(self) -> str:
        """This process's owner token; made at the first need, so that pure readers write nothing."""
        with self._guard, disk_errors(self.root, "begin work in the store"):
            if self._token is None:
                token = fresh_name()
                lock = self._owner_lock(token)
                lock.acquire()
                self._alive = lock
                self._token = token
                with self.journal.write("begin work in the store"):
                    self.journal.add_owner(token, self.pid, socket.gethostname(), time.time())
            return self._token

    @contextlib.contextmanager
    def workdir(self) -> Iterator[Path]:
        """A private folder on the disk of the store; gone afterwards, at the latest with the next opening."""
        folder = self.root / "tmp" / self.token() / fresh_name()
        try:
            _fs.make_dir(folder)
            yield folder
        finally:
            _fs.remove_tree(folder)

    def passing_file(self) -> Path:
        """A name for a file in the root; if it is left behind, it goes with this process."""
        return self.root / f"{_PASSING}{self.token()}-{fresh_name()}.onnx"

    @contextlib.contextmanager
    def hold(self, digests: Iterable[str], doing: str) -> Iterator[str]:
        """Keep blobs from every sweep, also those that are about to appear."""
        hold, token = fresh_name(), self.token()
        with self.journal.write(doing):
            self.journal.add_hold(hold, token, digests)
        try:
            yield hold
        finally:
            self._let_go(hold)

    def _let_go(self, hold: str) -> None:
        """Ends a hold and removes what only it kept: blobs of a put that failed half-way."""
        try:
            with self.journal.write("release a hold"):
                digests = self.journal.digests_of_hold(hold)
                self.journal.remove_hold(hold)
                self.blobs.remove_unneeded(digests, self.held())
        except (StoreError, OSError):
            return  # the opening after this process ends sweeps it; clean-up never hides the first error

    def held(self) -> set[str]:
        """Digests that a live process holds."""
        owners = [owner for owner in self.journal.owners() if self.is_alive(owner)]
        return {digest for owner in owners for digest in self.journal.holds_of(owner)}

    def sweep_dead(self) -> None:
        """Remove temp files, holds and half-placed blobs of processes that ended without cleaning up."""
        left = self.journal.owners() | {path.name for path in (self.root / "tmp").iterdir()}
        for token in left - {self._token}:
            lock = self._owner_lock(token)
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                continue
            try:
                self._bury(token)
            finally:
                lock.release()

    def sweep_locks(self) -> None:
        """Remove lock files that nobody opened for a day and nobody holds: those who held them were killed."""
        for path in (self.root / "locks").glob("*.lock"):
            with contextlib.suppress(OSError, filelock.Timeout):
                if time.time() - path.stat().st_mtime > _IDLE_S:
                    with filelock.FileLock(path, timeout=0, thread_local=False):
                        _fs.unlink(path)  # while it is held: who opened it meanwhile sees that it is gone

    def _bury(self, token: str) -> None:
        _fs.remove_tree(self.root / "tmp" / token)
        for path in self.root.glob(f"{_PASSING}{token}-*"):
            with contextlib.suppress(OSError):  # Windows keeps a file that is open
                _fs.unlink(path)
        with self.journal.write("clean up after a process that ended"):
            digests = self.journal.holds_of(token)
            self.journal.remove_owner(token)
            self.blobs.remove_unneeded(digests, self.held())
        with contextlib.suppress(OSError):  # Windows keeps a file that is open
            _fs.unlink(self._lock_path(token))

    def is_alive(self, token: str) -> bool:
        """Does the process of this token still run?"""
        if token == self._token or self.journal.read_only:  # where nothing can be locked, nothing is removed
            return True
        if not self._lock_path(token).exists():
            return False
        lock = self._owner_lock(token)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            return True
        lock.release()
        return False

    def _lock_path(self, token: str) -> Path:
        return self.root / "locks" / "owners" / f"{token}.lock"

    def _owner_lock(self, token: str) -> filelock.BaseFileLock:
        _fs.make_dir(self.root / "locks" / "owners")
        return filelock.FileLock(self._lock_path(token), thread_local=False)


def is_beside_content(path: Path) -> bool:
    """Is this a file of `Store.beside_content`, so that what it refers to is content that never changes?"""
    return path.name.startswith(_PASSING) and (path.parent / JOURNAL).is_file()


def fresh_name() -> str:
    return os.urandom(8).hex()
