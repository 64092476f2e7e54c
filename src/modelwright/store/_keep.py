"""Taking files in: hash, flush, move into place, and last of all the journal row."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright.errors import StoreError
from modelwright.store import _fs
from modelwright.store._blobs import Staged
from modelwright.store._digests import SMALL, known_digest
from modelwright.store._key import Key
from modelwright.store._manifest import make_manifest
from modelwright.store._materialize import damaged
from modelwright.store._names import check_names
from modelwright.store._session import Session, fresh_name
from modelwright.store._stamp import stamp_of
from modelwright.store._types import Artifact, Entry, FileEntry, JsonValue


@dataclass(frozen=True)
class Parcel:
    """What is to be kept. `move` says that the files are ours to take, `reused` are in the store already."""

    key: Key
    label: str
    sources: Mapping[str, Path]
    roles: Mapping[str, str]
    meta: Mapping[str, JsonValue]
    move: bool = False
    reused: tuple[FileEntry, ...] = ()
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def keep(session: Session, work: Path, parcel: Parcel) -> Artifact:
    """Store the parcel through the private folder `work`, which must be on the disk of the store."""
    _check(parcel)
    files, staged = list(parcel.reused), {}
    for name, source in parcel.sources.items():
        item = _stage(source, work, move=parcel.move)
        files.append(FileEntry(name, parcel.roles[name], item.digest, item.size))
        staged[item.digest] = item
    manifest = make_manifest(files, parcel.meta)
    top = _stage_bytes(manifest.encode(), work)
    staged[top.digest] = top
    artifact = Artifact(parcel.key, top.digest, manifest.files, manifest.meta, time.time(), session.blobs.folder)
    _commit(session, artifact, parcel, list(staged.values()))
    return artifact


def _commit(session: Session, artifact: Artifact, parcel: Parcel, staged: list[Staged]) -> None:
    roles, now = tuple(sorted({file.role for file in artifact.files})), artifact.created
    entry = Entry(artifact.key, parcel.label, artifact.digest, artifact.size, now, now, roles, parcel.tags)
    sizes = {file.digest: file.size for file in parcel.reused} | {item.digest: item.size for item in staged}
    for digest, size in sizes.items():
        if size > SMALL:  # hash a large one that is already there now, not under the exclusive lock
            session.blobs.fault(digest, size)
    # Announced first, so that a kill from here on leaves nothing that the next opening does not remove.
    with (
        session.hold(sizes, "announce an artifact"),
        session.journal.write("store an artifact", durable=True),
    ):
        for file in parcel.reused:
            if session.blobs.fault(file.digest, file.size) is not None:
                raise damaged(artifact, file.name)
        for item in staged:
            session.blobs.place(item)
        _fs.flush_dir(session.blobs.folder)
        session.journal.add_entry(entry, sizes)


def _check(parcel: Parcel) -> None:
    names = set(parcel.sources)
    if not names and not parcel.reused:
        raise StoreError(
            f"Stage {parcel.key.stage} made no file",
            cause="an empty artifact would look like a good one",
            fix="Check the log of the stage: it ended without an error but wrote nothing.",
        )
    check_names([*names, *(file.name for file in parcel.reused)])
    if names != set(parcel.roles):
        odd = sorted(names ^ set(parcel.roles))[0]
        what = "has no role" if odd in names else "has a role but was not written"
        fix = "Name the role of every file, and of nothing else."
        raise StoreError(f"Stage {parcel.key.stage} gave an incomplete result", cause=f"{odd!r} {what}", fix=fix)


def _stage(source: Path, work: Path, *, move: bool) -> Staged:
    """A file with another link or behind a link is somebody else's too: it is copied, not taken."""
    if move and not source.is_symlink() and source.stat().st_nlink == 1:
        _fs.chmod(source, _fs.WRITABLE)  # a producer may leave it read-only
        return _seal(source, _fs.hash_file(source))
    target = work / fresh_name()
    return _seal(target, _copied(source, target))


def _copied(source: Path, target: Path) -> str:
    """The digest of the copy. What was hashed before, and not written to until it was copied, is not hashed again."""
    before = stamp_of(source)
    known = known_digest(source, before)
    if known is None:
        return _fs.copy_hashed(source, target)
    _fs.copy(source, target)
    return known if stamp_of(source) == before else _fs.hash_file(target)


def _stage_bytes(data: bytes, work: Path) -> Staged:
    target = work / fresh_name()
    _fs.write_file(target, data)
    return _seal(target, hashlib.sha256(data).hexdigest())


def _seal(path: Path, digest: str) -> Staged:
    _fs.flush_file(path)
    _fs.chmod(path, _fs.READ_ONLY)
    return Staged(path, digest, path.stat().st_size)
