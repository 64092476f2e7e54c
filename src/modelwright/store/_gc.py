"""Mark and sweep under a size budget."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from modelwright._dataclass import dataclass
from modelwright.store._session import Session
from modelwright.store._types import Entry, GcReport

T = TypeVar("T")
R = TypeVar("R")
_BATCH = 64
_TURN_S = 0.5
"""So long a transaction may hold the store's lock; the batch that it is at is finished."""
_PAUSE_S = 0.12
"""Between two of them. Who waits for SQLite's lock looks ten times a second, and finds it free."""
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


def collect(session: Session, policy: Policy, gone: list[Entry], *, dry_run: bool) -> GcReport:
    """Drop entries and commit, then delete their blobs: a kill in between leaves orphans, never holes.

    `gone` grows by what is dropped, so that the caller knows it whatever happens next.
    """
    if dry_run:
        plan = _plan(session, policy)
        unused = orphans(session)
        freed = plan.freed_bytes + sum(session.blobs.bytes_of(digest) for digest in unused)
        return replace(plan, orphans=len(unused), freed_bytes=freed, dry_run=True)
    session.sweep_dead()
    session.sweep_locks()
    plan = _plan(session, policy)
    for entry in _dropped(session, policy, plan.removed):
        gone.append(entry)
    with session.journal.write("forget unused content"):
        session.journal.forget_unneeded()
    unused = orphans(session)
    freed = _sweep(session, unused)
    with session.journal.write("empty the quarantine"):
        freed += session.blobs.empty_quarantine()
    _tidy(session)
    removed, (_, kept) = oldest_first(gone), session.journal.weight()
    return replace(plan, removed=removed, orphans=len(unused), freed_bytes=freed, kept_bytes=kept)


def oldest_first(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=lambda entry: (entry.last_used, entry.key.digest)))


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


def _dropped(session: Session, policy: Policy, entries: Iterable[Entry]) -> Iterator[Entry]:
    """In the order of the journal's own tree, so that a transaction writes few pages. What somebody has begun to use
    since the plan was made stays."""

    def drop(batch: Sequence[Entry], held: set[str]) -> list[Entry]:
        now = [(entry, session.journal.entry(entry.key.digest)) for entry in batch]
        old = [a for a, b in now if b is not None and b.digest not in held and b.last_used <= policy.spare_after]
        session.journal.remove_entries([entry.key.digest for entry in old])
        return old

    ordered = sorted(entries, key=lambda entry: entry.key.digest)
    return _in_turns(session, "remove old entries", ordered, drop, durable=True)


def _sweep(session: Session, digests: Sequence[str]) -> int:
    """Each transaction looks again at who needs what. Returns the freed bytes."""
    blobs = session.blobs
    return sum(_in_turns(session, "delete unused content", digests, lambda *what: [blobs.remove_unneeded(*what)]))


def _tidy(session: Session) -> None:
    """Forget marks and notes of what is gone. A mark that is lost costs little, so nobody has to wait for that."""
    journal = session.journal
    owned, sizes = _references(session)
    journal.marks.sweep(set(owned) | set(sizes))

    def forget(keys: Sequence[str], _: set[str]) -> list[str]:
        gone = [key for key in keys if journal.entry(key) is None]
        for key in gone:
            journal.notes.remove(key)
        return gone

    for _ in _in_turns(session, "remove old notes", journal.notes.others(set(owned)), forget):
        pass


def _in_turns(
    session: Session,
    doing: str,
    items: Sequence[T],
    act: Callable[[Sequence[T], set[str]], Iterable[R]],
    *,
    durable: bool = False,
) -> Iterator[R]:
    """What came of `act` on batches of them, with what is held; told after the commit. Others put and hit between the
    transactions."""
    begun = 0
    while begun < len(items):
        time.sleep(_PAUSE_S if begun else 0)
        done: list[R] = []
        with session.journal.write(doing, durable=durable):
            held, ends = session.held(), time.monotonic() + _TURN_S
            while True:
                done += act(items[begun : begun + _BATCH], held)
                begun += _BATCH
                if begun >= len(items) or time.monotonic() >= ends:
                    break
        yield from done
