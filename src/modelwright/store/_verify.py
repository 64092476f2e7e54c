"""A hit is a verified manifest. What does not verify is set aside and never served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.store import _gc
from modelwright.store._manifest import Manifest, parse_manifest
from modelwright.store._session import Session
from modelwright.store._types import Artifact, Damage, Entry, VerifyReport

if TYPE_CHECKING:
    import logging
else:
    logging = lazy("logging")

_MISSING = "missing"


def checked(session: Session, entry: Entry) -> Artifact | None:
    """The artifact if all of it is what the journal says; otherwise it is discarded."""
    manifest = _manifest(session, entry.digest)
    if manifest is None:
        discard(session, entry.digest)
        return None
    for file in manifest.files:
        if session.blobs.fault(file.digest, file.size) is not None:
            discard(session, file.digest)
            return None
    return Artifact(entry.key, entry.digest, manifest.files, manifest.meta, entry.created, session.blobs.folder)


def noted(session: Session, entry: Entry) -> Artifact | None:
    """The artifact as its manifest describes it, whatever has become of its files."""
    manifest = _manifest(session, entry.digest)
    if manifest is None:
        return None
    return Artifact(entry.key, entry.digest, manifest.files, manifest.meta, entry.created, session.blobs.folder)


def discard(session: Session, digest: str) -> Damage | None:
    """Drop every entry that needs a wrong blob. None if gc took it, or a good copy replaced it since."""
    if session.journal.read_only:
        return _note(digest, _reason(session, digest), session.journal.entries_with(digest))
    with session.journal.write("set damaged content aside"):
        entries, reason = session.journal.entries_with(digest), _reason(session, digest)
        if not entries or reason is None:
            return None
        for entry in entries:
            session.journal.remove_entry(entry.key.digest)
        session.blobs.quarantine(digest)
    return _note(digest, reason, entries)


def verify(session: Session, *, deep: bool) -> VerifyReport:
    sizes = {digest: size for _, digest, size in session.journal.references()}
    wrong = [d for d, size in sizes.items() if session.blobs.fault(d, size, deep=deep) is not None]
    journal = session.journal
    manifests = {entry.digest for entry in (*journal.entries(), *journal.entries(records=True))}
    wrong += [d for d in manifests - set(wrong) if _manifest(session, d) is None]
    found = [damage for digest in wrong if (damage := discard(session, digest)) is not None]
    return VerifyReport(
        checked_blobs=len(sizes),
        checked_bytes=sum(sizes.values()),
        damaged=tuple(damage for damage in found if damage.reason != _MISSING),
        missing=tuple(damage for damage in found if damage.reason == _MISSING),
        orphans=tuple(_gc.orphans(session)),
    )


def _manifest(session: Session, digest: str) -> Manifest | None:
    data = session.blobs.read(digest)
    try:
        return None if data is None else parse_manifest(data)
    except ValueError:
        return None


def _reason(session: Session, digest: str) -> str | None:
    """Looks again, by content: someone may have put a good copy in place meanwhile."""
    size = session.journal.size_of(digest)
    if size is None:
        return _MISSING
    fault = session.blobs.fault(digest, size, deep=True)
    if fault is None and any(entry.digest == digest for entry in session.journal.entries_with(digest)):
        return None if _manifest(session, digest) is not None else "it is not a manifest that can be followed"
    return fault


def _note(digest: str, reason: str | None, entries: list[Entry]) -> Damage | None:
    if reason is None:
        return None
    keys = tuple(entry.key for entry in entries)
    named = ", ".join(str(key) for key in keys)
    logging.getLogger(__name__).warning("stored content %s: %s; dropped %s", digest[:12], reason, named)
    return Damage(digest, reason, keys)
