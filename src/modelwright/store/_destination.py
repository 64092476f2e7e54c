"""What stands in a folder that is to be written: what we wrote and can prove, and what is somebody else's.

A note in the folder names the digest of every file that was put there. Only a file that still has it is ours: it can
be made again, so nothing is lost with it. Everything else stays, whatever was asked for.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path, PurePosixPath

from modelwright import _json
from modelwright._dataclass import dataclass
from modelwright._output import SEAL, is_sealed, sealed
from modelwright.errors import UsageError
from modelwright.store._digests import file_digest
from modelwright.store._names import MARKER
from modelwright.store._stamp import Stamp, stamp_of
from modelwright.store._types import Artifact, FileEntry


@dataclass(frozen=True)
class Written:
    """A file of ours: what it holds, and how it looked when that was checked."""

    digest: str
    stamp: Stamp


@dataclass(frozen=True)
class FolderSurvey:
    """`ours` by name, the note included. `changed` are files we wrote that somebody edited since.

    `folders` are those that our files are in, or were.
    """

    ours: Mapping[str, Written] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    folders: frozenset[str] = frozenset()

    @property
    def theirs(self) -> tuple[str, ...]:
        return (*self.changed, *self.foreign)

    def in_the_way(self, names: Iterable[str]) -> str | None:
        """Something of theirs that has to go before these files can be written."""
        wanted = {MARKER, *names}
        folders = _folders(wanted)
        blocking = (name for name in self.theirs if name in wanted or name in folders or _below(name, wanted))
        return next(blocking, None)


def survey(folder: Path) -> FolderSurvey:
    """Reads every file that could be ours; links are never followed."""
    known = _noted(folder)
    ours: dict[str, Written] = {}
    foreign: list[str] = []
    changed: list[str] = []
    folders = _folders(known)
    for name in _present(folder, folders):
        found = _proven(folder / name, known.get(name, frozenset()))
        if found is not None:
            ours[name] = found
        else:
            (changed if name in known else foreign).append(name)
    return FolderSurvey(ours, tuple(foreign), tuple(changed), folders)


def touched(folder: Path, found: FolderSurvey, ignored: str) -> str | None:
    """A file that was changed or added since the survey; `ignored` is a folder of ours in it."""
    for name in _present(folder, found.folders):
        written = found.ours.get(name)
        if written is not None:
            now = stamp_of(folder / name)
            # Not the change time: a hard link to the same content sets it too.
            if (now.size, now.modified, now.inode) != (written.stamp.size, written.stamp.modified, written.stamp.inode):
                return name
        elif name not in found.theirs and not name.startswith(f"{ignored}/"):
            return name
    return None


def note(artifact: Artifact, files: Iterable[tuple[str, str]]) -> bytes:
    """The note: (name, digest) of all that was put there. A name may occur twice while one replaces the other."""
    listed = [{"name": name, "digest": digest} for name, digest in sorted(files)]
    return sealed(_json.dumps({"key": artifact.key, "digest": artifact.digest, "files": listed, "seal": SEAL}))


def named(files: Iterable[FileEntry]) -> set[tuple[str, str]]:
    return {(file.name, file.digest) for file in files}


def refused(target: Path, cause: str, fix: str) -> UsageError:
    return UsageError(f"Will not replace {target}", cause=cause, fix=fix)


def refusal(target: Path, found: FolderSurvey, name: str) -> UsageError:
    """Why `name`, which is not ours, keeps the folder from being written."""
    if name in found.changed:
        cause = f"{name} in it was changed since modelwright wrote it"
    else:
        cause = f"modelwright did not write {name} in it"
    return refused(target, cause, "Choose another folder, or move that file away first.")


def _noted(folder: Path) -> dict[str, frozenset[str]]:
    """Name → digests that we wrote there; nothing without a note that is whole."""
    path = folder / MARKER
    if path.is_symlink() or not path.is_file():
        return {}
    data = path.read_bytes()
    if not is_sealed(data):
        return {}
    known = {MARKER: frozenset({hashlib.sha256(data).hexdigest()})}
    try:
        for file in json.loads(data)["files"]:
            known[file["name"]] = known.get(file["name"], frozenset()) | {file["digest"]}
    except (ValueError, TypeError, KeyError):  # sealed, but not as a note
        return {}
    return known


def _folders(names: Iterable[str]) -> frozenset[str]:
    return frozenset(str(parent) for name in names for parent in PurePosixPath(name).parents)


def _present(folder: Path, expected: frozenset[str]) -> Iterable[str]:
    """Files, links and empty folders, but for empty ones that once held files of ours."""
    for place, folders, files in os.walk(folder):
        base = Path(place)
        linked = [name for name in folders if (base / name).is_symlink()]
        names = [(base / name).relative_to(folder).as_posix() for name in (*files, *linked)]
        yield from sorted(names)
        if not files and not folders and base != folder and base.relative_to(folder).as_posix() not in expected:
            yield base.relative_to(folder).as_posix()


def _proven(path: Path, digests: frozenset[str]) -> Written | None:
    if not digests or path.is_symlink() or not path.is_file():
        return None
    before = stamp_of(path)
    digest = file_digest(path)
    return Written(digest, before) if digest in digests else None


def _below(name: str, wanted: set[str]) -> bool:
    """A folder of theirs has the name of a file of ours."""
    return any(str(parent) in wanted for parent in PurePosixPath(name).parents)
