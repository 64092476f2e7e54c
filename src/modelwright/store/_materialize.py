"""An artifact as a plain folder, built beside its destination and swapped in whole."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright import _json
from modelwright._lazy import lazy
from modelwright.errors import StoreError
from modelwright.store import _fs
from modelwright.store._names import MARKER
from modelwright.store._session import Session, fresh_name
from modelwright.store._types import Artifact

if TYPE_CHECKING:
    import filelock
else:
    filelock = lazy("filelock")

_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)


class Folder:
    """One destination, as seen by one session. Two processes that want the same destination take turns."""

    def __init__(self, session: Session, destination: Path) -> None:
        self._session = session
        self._target = Path(os.path.abspath(destination))  # noqa: PTH100 - resolve() would follow a link
        place = f"{session.root}\0{self._target}"
        digest = hashlib.sha256(place.encode()).hexdigest()[:12]
        # Without a turn (see below) the names must be unique.
        self._name = f"reader-{fresh_name()}" if session.journal.read_only else digest
        self._fresh = self._target.with_name(f".wright-{self._name}-new")
        self._aside = self._target.with_name(f".wright-{self._name}-old")

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        if self._session.journal.read_only:
            yield
            return
        lock = self._session.root / "locks" / f"folder-{self._name}.lock"
        with filelock.FileLock(lock, thread_local=False):
            self._recover()
            yield

    def _recover(self) -> None:
        """Clean up after a process that was killed here; it is our turn, so nobody works beside us."""
        if os.path.lexists(self._aside) and not os.path.lexists(self._target):
            _fs.rename(self._aside, self._target)
        _fs.remove_tree(self._fresh)
        _fs.remove_tree(self._aside)

    def check_free(self, *, overwrite: bool) -> None:
        """Refuse to replace anything but our own folder, with nothing of the user's in it."""
        target, root = self._target.resolve(), self._session.root.resolve()
        if target.is_relative_to(root) or root.is_relative_to(target):
            raise self._refused("the store itself lives there", "Choose a folder outside of the store.")
        fix = "Choose another folder, or allow it to be overwritten."
        if not os.path.lexists(self._target):
            return
        if not self._target.is_dir() and not self._target.is_symlink():
            raise self._refused("there is a file of that name", "Choose another folder, or remove the file.")
        if overwrite:
            return
        if self._target.is_symlink():
            raise self._refused("it is a link, not a folder that modelwright made", fix)
        foreign = _foreign(self._target)
        if foreign is not None:
            raise self._refused(f"modelwright did not write {foreign} in it", fix)

    def copy(self, artifact: Artifact) -> None:
        """Fill a sibling folder, then swap. A kill leaves the old folder or the new one, at worst none."""
        with self._replacing(artifact) as folder:
            self._copy_files(artifact, folder)
        _fs.flush_dir(self._target.parent)

    def link(self, artifact: Artifact) -> bool:
        """The same with hard links; whether the disk let us.

        One transaction: no sweep comes between, and the new ctime of each blob (making and removing links
        changes it) is noted with it, which saves the next hit from hashing large ones again.
        """
        try:
            with self._session.journal.write("link an artifact"):
                with self._replacing(artifact) as folder:
                    self._link_files(artifact, folder)
                for file in artifact.files:
                    self._session.blobs.restamp(file.digest)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return False
        return True

    @contextlib.contextmanager
    def _replacing(self, artifact: Artifact) -> Iterator[Path]:
        try:
            _fs.make_dir(self._fresh)
            yield self._fresh
            _fs.write_file(self._fresh / MARKER, _marker(artifact))
            self._swap()
        finally:
            _fs.remove_tree(self._fresh)

    def _copy_files(self, artifact: Artifact, folder: Path) -> None:
        for file in artifact.files:
            target = folder / file.name
            _fs.make_dir(target.parent)
            _fs.copy(self._session.blobs.path(file.digest), target)
            # After the copy, so that a change meanwhile is seen too.
            if self._session.blobs.fault(file.digest, file.size) is not None:
                raise damaged(artifact, file.name)
            _fs.chmod(target, _fs.WRITABLE)
            _fs.flush_file(target)

    def _link_files(self, artifact: Artifact, folder: Path) -> None:
        for file in artifact.files:
            if self._session.blobs.fault(file.digest, file.size) is not None:
                raise damaged(artifact, file.name)
            target = folder / file.name
            _fs.make_dir(target.parent)
            _fs.link(self._session.blobs.path(file.digest), target)
            self._session.blobs.restamp(file.digest)  # the same content may be linked twice

    def _swap(self) -> None:
        replaces = os.path.lexists(self._target)
        if replaces:
            _fs.rename(self._target, self._aside)
        try:
            _fs.rename(self._fresh, self._target)
        except OSError:
            if replaces:
                self._aside.replace(self._target)
            raise
        _fs.remove_tree(self._aside)

    def _refused(self, cause: str, fix: str) -> StoreError:
        return StoreError(f"Will not replace {self._target}", cause=cause, fix=fix)


def damaged(artifact: Artifact, name: str) -> StoreError:
    return StoreError(
        f"Artifact {artifact.key} cannot be used",
        cause=f"the stored content of {name} is damaged or was removed",
        fix="Run the command that makes it again: it will be rebuilt.",
    )


def _marker(artifact: Artifact) -> bytes:
    note = {"key": artifact.key, "digest": artifact.digest, "files": [file.name for file in artifact.files]}
    return _json.dumps(note).encode()


def _foreign(folder: Path) -> str | None:
    """A file in the folder that its marker does not name. An empty folder holds none."""
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    try:
        known = {MARKER, *json.loads((folder / MARKER).read_bytes())["files"]}
    except (OSError, ValueError, TypeError, KeyError):
        known = set()
    foreign = sorted(present - known)
    return foreign[0] if foreign else None
