"""Mark and sweep under a size budget."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from modelwright._dataclass import dataclass
from modelwright.store._session import Session
from modelwright.store._types import GcReport

_BATCH = 64
_ENOUGH = 16 << 20
"""More than the journal needs to say that thousands of entries are gone."""


@dataclass(frozen=True)
class Policy:
    """Entries go, oldest use first, while `more(bytes left)`; never those used after `spare_after`.

    Records cannot be made again: they go only where `records` says so.
    """

    more: Callable[[int], bool]
    spare_after: float
    records: bool = False


def collect(session: Session, policy: Policy, *, dry_run: bool) -> GcReport:
    """Drop entries and commit, then delete their blobs: a kill in between leaves orphans, never holes."""
    if dry_run:
        plan = _plan(session, policy)
        unused = orphans(session)
        freed = plan.freed_bytes + sum(session.blobs.bytes_of(digest) for digest in unused)
        return replace(plan, orphans=len(unused), freed_bytes=freed, dry_run=True)
    session.sweep_dead()
    session.sweep_locks()
    with session.journal.write("remove old entries", durable=True):
        plan = _plan(session, policy)
        for entry in plan.removed:
            session.journal.remove_entry(entry.key.digest)
    dropped = orphans(session)
    freed = _sweep(session, dropped)
    with session.journal.write("empty the quarantine"):
        freed += session.blobs.empty_quarantine()
        owned, sizes = _references(session)
        session.journal.marks.sweep(set(owned) | set(sizes))
        session.journal.notes.sweep(set(owned))
    return replace(plan, orphans=len(dropped), freed_bytes=freed)


def make_room(session: Session, policy: Policy) -> GcReport:
    """Free some bytes where the journal has none to be written with.

    The other way round than `collect`: content goes first and the journal learns it afterwards. An entry without its
    content is a miss, so nothing wrong is served if this ends half-way.
    """
    freed = session.blobs.empty_quarantine()
    plan = _plan(session, policy)
    gone = {entry.key.digest for entry in plan.removed}
    owned, _ = _references(session)
    kept = {digest for key, digests in owned.items() if key not in gone for digest in digests} | session.held()
    for digest in (digest for key in owned if key in gone for digest in owned[key] if digest not in kept):
        if freed >= _ENOUGH:
            break
        freed += session.blobs.discard(digest)
    return replace(plan, freed_bytes=freed)


def _plan(session: Session, policy: Policy) -> GcReport:
    """What may go. Content shared with an entry that stays, or held by a live process, frees nothing."""
    held = session.held()
    owned, sizes = _references(session)
    users = Counter(digest for digests in owned.values() for digest in digests)
    left, freed, removed, leased = sum(sizes.values()), 0, [], 0
    records = session.journal.entries(records=True)
    for entry in session.journal.entries() + (records if policy.records else []):
        if not policy.more(left):
            break
        if entry.digest in held:
            leased += 1
        elif entry.last_used <= policy.spare_after:
            users.subtract(owned[entry.key.digest])
            gone = sum(sizes[d] for d in owned[entry.key.digest] if users[d] == 0 and d not in held)
            left, freed = left - gone, freed + gone
            removed.append(entry)
    return GcReport(
        removed=tuple(removed),
        orphans=0,
        freed_bytes=freed,
        kept_bytes=left,
        leased=leased,
        dry_run=False,
        records=len(set(records) - set(removed)),
    )


def _references(session: Session) -> tuple[dict[str, list[str]], dict[str, int]]:
    owned: dict[str, list[str]] = defaultdict(list)
    sizes: dict[str, int] = {}
    for key, digest, size in session.journal.references():
        owned[key].append(digest)
        sizes[digest] = size
    return owned, sizes


def orphans(session: Session) -> list[str]:
    """Blobs that no entry needs and nobody holds, as of now."""
    present, held = list(session.blobs.on_disk()), session.held()
    needed = {digest for _, digest, _ in session.journal.references()}
    return [digest for digest in present if digest not in needed and digest not in held]


def _sweep(session: Session, digests: Sequence[str]) -> int:
    """In batches, so that a put or a hit never waits long; each batch looks again at who needs what."""
    freed = 0
    for batch in _batches(digests):
        with session.journal.write("delete unused content"):
            freed += session.blobs.remove_unneeded(batch, session.held())
    return freed


def _batches(digests: Sequence[str]) -> Iterable[Sequence[str]]:
    return (digests[start : start + _BATCH] for start in range(0, len(digests), _BATCH))
