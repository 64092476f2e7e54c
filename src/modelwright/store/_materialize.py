"""An artifact as a plain folder: swapped in whole, or file by file where others have files of their own."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from modelwright.errors import StoreError, UsageError
from modelwright.store import _digests, _fs
from modelwright.store._destination import FolderSurvey, named, note, refusal, refused, survey, touched
from modelwright.store._locks import PassingLock
from modelwright.store._names import MARKER
from modelwright.store._session import Session, fresh_name
from modelwright.store._stamp import Stamp, stamp_of
from modelwright.store._types import Artifact, FileEntry

_BOTH = ".wright-both.json"
_UNSHARED = "Leave `shared` out: then every folder has its own copy."
# Less is not worth a link: who edits a small file means this one.
_WORTH_SHARING = 1 << 16
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)


class Folder:
    """One destination, as seen by one session. Two processes that want the same destination take turns."""

    def __init__(self, session: Session, destination: Path, beside: Sequence[Path] | None = None) -> None:
        """`beside` are folders of ours to share files with; None is to share with nobody."""
        self._session = session
        self._neighbours = None if beside is None else FolderNeighbours(beside)
        self._target = Path(os.path.abspath(destination))  # noqa: PTH100 - resolve() would follow a link
        place = f"{session.root}\0{self._target}"
        digest = hashlib.sha256(place.encode()).hexdigest()[:12]
        # Without a turn (see below) the names must be unique.
        self._name = f"reader-{fresh_name()}" if session.journal.read_only else digest
        self._fresh = self._target.parent / f".wright-{self._name}-new"
        self._aside = self._target.parent / f".wright-{self._name}-old"
        self._inside = self._target / f".wright-{self._name}-new"
        self._in_place = False
        self._found = FolderSurvey()
        self._sealed: dict[str, Stamp] = {}
        self._shared_with: dict[str, tuple[Path, ...]] = {}

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        if self._session.journal.read_only:
            yield
            return
        lock = self._session.root / "locks" / f"folder-{self._name}.lock"
        with PassingLock(lock):
            self._recover()
            yield

    def _recover(self) -> None:
        """Clean up after a process that was killed here; it is our turn, so nobody works beside us."""
        if os.path.lexists(self._aside) and not os.path.lexists(self._target):
            _fs.rename(self._aside, self._target)
        for leftover in (self._fresh, self._aside, self._inside):
            _fs.remove_tree(leftover)

    def check(self, names: Iterable[str], *, overwrite: bool) -> None:
        """Refuse before anything is written; learn what may be replaced, and how."""
        self._refuse_place(overwrite=overwrite)
        if not os.path.lexists(self._target):
            return
        self._found = survey(self._target)
        blocking = self._found.in_the_way(names) if overwrite else next(iter(self._found.theirs), None)
        if blocking is not None:
            raise refusal(self._target, self._found, blocking)
        self._in_place = bool(self._found.theirs) or _is_fixed(self._target)

    def _refuse_place(self, *, overwrite: bool) -> None:
        target, root = self._target.resolve(), self._session.root.resolve()
        elsewhere = "Choose another folder."
        if target.is_relative_to(root) or root.is_relative_to(target):
            raise refused(self._target, "the store itself lives there", elsewhere)
        if target == target.parent:
            raise refused(self._target, "it is the root of a disk", elsewhere)
        if self._target.is_symlink() and not (overwrite and target.is_dir()):
            raise refused(self._target, "it is a link, not a folder that modelwright made", elsewhere)
        if self._target.exists() and not self._target.is_dir():
            raise refused(self._target, "there is a file of that name", elsewhere)

    def holds(self, artifact: Artifact) -> bool:
        """Whether every file of it stands there as it was written, with its note and nothing else of ours, and may be
        edited: none is a link into the store. Where files are to be shared, whether they are."""
        wanted = named(artifact.files)
        told = hashlib.sha256(note(artifact, wanted)).hexdigest()
        if {(name, file.digest) for name, file in self._found.ours.items()} != {*wanted, (MARKER, told)}:
            return False
        if self._neighbours is not None:
            return all(self._is_shared(file) for file in artifact.files)
        return all((self._target / file.name).stat().st_nlink == 1 for file in artifact.files)

    def _is_shared(self, file: FileEntry) -> bool:
        """With every neighbour that has it, and not with the store."""
        assert self._neighbours is not None
        own = (self._target / file.name).stat()
        others = self._neighbours.with_content(file)
        if not others:
            blob = self._session.blobs.path(file.digest)
            return own.st_nlink == 1 or not (blob.exists() and os.path.samestat(blob.stat(), own))
        return all(os.path.samestat(other.stat(), own) for other in others)

    def copy(self, artifact: Artifact) -> None:
        """Fill a sibling folder, then swap. A kill leaves the old folder or the new one, at worst none."""
        with self._replacing(artifact) as folder:
            self._copy_files(artifact, folder)
        _fs.flush_dir(self._target if self._in_place else self._target.parent)
        for file in artifact.files:
            for path in (self._target / file.name, *self._shared_with.get(file.name, ())):
                _digests.remember(path, file.digest, self._sealed[file.name])

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
        fresh = self._inside if self._in_place else self._fresh
        try:
            _fs.make_dir(fresh)
            yield fresh
            _fs.write_file(fresh / MARKER, note(artifact, named(artifact.files)))
            if self._in_place:
                self._move_in(artifact)
            else:
                self._swap()
        finally:
            _fs.remove_tree(fresh)

    def _copy_files(self, artifact: Artifact, folder: Path) -> None:
        for file in artifact.files:
            target = folder / file.name
            _fs.make_dir(target.parent)
            if self._neighbours is not None and (others := self._neighbours.lend(file, target)):
                self._shared_with[file.name], self._sealed[file.name] = others, stamp_of(target)
                continue
            _fs.copy(self._session.blobs.path(file.digest), target)
            # After the copy, so that a change meanwhile is seen too.
            if self._session.blobs.fault(file.digest, file.size) is not None:
                raise damaged(artifact, file.name)
            _fs.flush_file(target)
            _fs.chmod(target, _fs.WRITABLE)  # last, so that its change time is later than its last write
            self._sealed[file.name] = stamp_of(target)

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
            if replaces:
                self._require_untouched(self._aside)
            _fs.rename(self._fresh, self._target)
        except (OSError, UsageError):
            if replaces:
                self._aside.replace(self._target)
            raise
        _fs.remove_tree(self._aside)

    def _move_in(self, artifact: Artifact) -> None:
        """File by file, beside those of others. A kill leaves old and new ones, all of them noted as ours."""
        self._require_untouched(self._target)
        before = {(name, file.digest) for name, file in self._found.ours.items() if name != MARKER}
        _fs.write_file(self._inside / _BOTH, note(artifact, before | named(artifact.files)))
        _fs.rename(self._inside / _BOTH, self._target / MARKER)
        for file in artifact.files:
            _fs.make_dir((self._target / file.name).parent)
            _fs.rename(self._inside / file.name, self._target / file.name)
        for name in {name for name, _ in before} - {file.name for file in artifact.files}:
            _fs.unlink(self._target / name)
            _fs.remove_empty(self._target, name)
        _fs.rename(self._inside / MARKER, self._target / MARKER)

    def _require_untouched(self, folder: Path) -> None:
        """Nobody may have edited what is about to be replaced while we were copying."""
        name = touched(folder, self._found, self._inside.name)
        if name is not None:
            raise refused(self._target, f"{name} in it was changed just now", "Run the same command again.")


class FolderNeighbours:
    """Folders of ours, whose files are linked instead of being written once more: every name is a whole file, so each
    folder can be moved or copied alone. Shared files are read-only, since whoever writes to one writes to all."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._found: dict[str, list[tuple[Path, Stamp]]] = {}
        for folder in folders:
            if (folder / MARKER).is_file() and not folder.is_symlink():
                for name, written in survey(folder).ours.items():
                    if written.stamp.size >= _WORTH_SHARING:
                        self._found.setdefault(written.digest, []).append((folder / name, written.stamp))

    def with_content(self, file: FileEntry) -> tuple[Path, ...]:
        return tuple(path for path, _ in self._found.get(file.digest, ()))

    def lend(self, file: FileEntry, target: Path) -> tuple[Path, ...]:
        """Make `target` one of the names of a file with this content. Nothing where nobody has it any more."""
        for path, stamp in self._found.get(file.digest, ()):
            try:
                _fs.link(path, target)
            except FileNotFoundError:
                continue  # replaced or removed just now
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                raise refused(target.parent, "this disk cannot keep one file in two folders", _UNSHARED) from error
            now = stamp_of(target)
            if (now.size, now.modified, now.inode) == (stamp.size, stamp.modified, stamp.inode):
                _fs.chmod(target, _fs.READ_ONLY)
                return tuple(other for other, seen in self._found[file.digest] if seen.inode == stamp.inode)
            _fs.unlink(target)
        return ()


def damaged(artifact: Artifact, name: str) -> StoreError:
    return StoreError(
        f"Artifact {artifact.key} cannot be used",
        cause=f"the stored content of {name} is damaged or was removed",
        fix="Run the command that makes it again: it will be rebuilt.",
    )


def _is_fixed(folder: Path) -> bool:
    """A folder that cannot be swapped: somebody stands in it, a disk hangs on it, or a link leads to it."""
    real = folder.resolve()
    return folder.is_symlink() or Path.cwd().is_relative_to(real) or os.path.ismount(real)
