"""The store: every result once, under the key of what made it; never half-written, never served damaged."""

from __future__ import annotations

import contextlib
import difflib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from modelwright import home
from modelwright._disk import disk_errors, read_only_error, room_errors
from modelwright.errors import NoRoomError, StoreError, UsageError
from modelwright.store import _fs, _gc, _verify
from modelwright.store._keep import Parcel, keep
from modelwright.store._key import RECORD, Key, require_digest
from modelwright.store._ledger import Ledger
from modelwright.store._locks import PassingLock
from modelwright.store._materialize import Folder, damaged
from modelwright.store._names import list_folder
from modelwright.store._session import Session
from modelwright.store._types import (
    Artifact,
    Entry,
    GcReport,
    JsonValue,
    OnceOutcome,
    Produced,
    StoreStats,
    VerifyReport,
    Waiting,
)

RECORD_FILE = "record.json"
GRACE_S = 120.0
"""gc spares what was used this recently: between a hit and the lease after it nobody holds the entry."""
_TELL_S = 1.0


class Store:
    """Safe for many threads and many processes on one machine. Opens on first use; usable after a fork.

    `read_only` changes nothing on disk, not even by looking; where there is no store it is empty.
    """

    def __init__(self, root: Path | None = None, *, read_only: bool = False) -> None:
        self._read_only = read_only
        self.root = Path(os.path.abspath(root or home.store_dir()))  # noqa: PTH100 - no links followed
        self._guard = threading.Lock()
        self._sessions: list[Session] = []
        self._finalizer = weakref.finalize(self, _close_all, self._sessions)

    def close(self) -> None:
        """End this process's work: its temp files, leases and connection. The next call opens again."""
        _close_all(self._sessions)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # keeping and finding

    def put(
        self,
        files: Mapping[str, Path] | Path,
        *,
        key: Key,
        roles: Mapping[str, str],
        meta: Mapping[str, JsonValue] | None = None,
        label: str = "",
    ) -> Artifact:
        """Copy files (name → source, or all of a folder) into the store. Sources are only read."""
        session = self._writable("store an artifact")
        with disk_errors(self.root, "store an artifact"), session.workdir() as work:
            sources = list_folder(files) if isinstance(files, Path) else files
            return keep(session, work, Parcel(key, label, sources, roles, meta or {}))

    def get(self, key: Key) -> Artifact | None:
        """The artifact, checked; None if there is none. A damaged one is logged, set aside and not served."""
        session = self._session()
        with disk_errors(self.root, "read the store"):
            entry = session.journal.entry(key.digest)
            artifact = None if entry is None else _verify.checked(session, entry)
        if artifact is not None:
            session.journal.marks.touch(key.digest)
        return artifact

    def recent(self, stage: str, limit: int) -> tuple[Artifact, ...]:
        """The newest artifacts of a stage, to learn from their notes: files are not checked, nothing counts as used."""
        session = self._session()
        with disk_errors(self.root, "read the store"):
            found = (_verify.noted(session, entry) for entry in session.journal.newest(stage, limit))
            return tuple(artifact for artifact in found if artifact is not None)

    def blob(self, digest: str, size: int) -> Path | None:
        """Where content is kept, whoever made it; None if it is not here or damaged. Read-only."""
        require_digest(digest)
        session = self._session()
        with disk_errors(self.root, "read the store"):
            return None if session.blobs.fault(digest, size) is not None else session.blobs.path(digest)

    def once(
        self,
        key: Key,
        produce: Callable[[Path], Produced],
        *,
        label: str = "",
        on_wait: Callable[[Waiting], None] | None = None,
    ) -> OnceOutcome:
        """The artifact of this key, made by `produce` in a private folder if nobody has made it yet.

        Among all processes and threads one produces, the others wait (`on_wait` is told for whom) and reuse.
        What `produce` raises comes through, and nothing is kept.
        """
        found = self.get(key)
        if found is not None:
            return OnceOutcome(found, produced=False, waited_s=0.0)
        session = self._writable("store an artifact")
        with self._turn(session, key, on_wait) as waited:
            found = self.get(key)
            if found is not None:
                return OnceOutcome(found, produced=False, waited_s=waited)
            return OnceOutcome(self._produce(session, key, produce, label), produced=True, waited_s=waited)

    def _produce(self, session: Session, key: Key, produce: Callable[[Path], Produced], label: str) -> Artifact:
        with contextlib.ExitStack() as stack:
            with disk_errors(self.root, "begin a stage"):
                work = stack.enter_context(session.workdir())
                folder = work / "files"
                _fs.make_dir(folder)
            with room_errors(self.root, f"run stage {key.stage}"):
                produced = produce(folder)
            with disk_errors(self.root, "store an artifact"):
                files = list_folder(folder)
                parcel = Parcel(key, label, files, produced.roles, produced.meta, move=True, reused=produced.reused)
                return keep(session, work, parcel)

    @contextlib.contextmanager
    def _turn(self, session: Session, key: Key, on_wait: Callable[[Waiting], None] | None) -> Iterator[float]:
        lock = PassingLock(self.root / "locks" / f"{key.digest}.lock")
        start = time.monotonic()
        with disk_errors(self.root, "wait for a stage"):
            free = lock.acquire(timeout=0)
        if not free:
            self._wait(session, key, lock, on_wait)
        try:
            waited = time.monotonic() - start
            with _announced(session, key):
                yield waited
        finally:
            lock.release()

    def _wait(self, session: Session, key: Key, lock: PassingLock, on_wait: Callable[[Waiting], None] | None) -> None:
        """Tells again and again, so that who no longer wants to wait can say so by raising."""
        while True:
            if on_wait is not None:
                on_wait(session.journal.producer(key))
            if lock.acquire(_TELL_S):
                return

    # records

    def keep_record(
        self, kind: str, digest: str, data: bytes, *, label: str, tags: Mapping[str, Sequence[str]]
    ) -> None:
        """Keep what was found. It is not made again like an artifact, so only an explicit wish removes it."""
        session = self._writable("keep the record")
        with disk_errors(self.root, "keep the record"), session.workdir() as work:
            _fs.write_file(work / RECORD_FILE, data)
            key, found = Key(digest, RECORD + kind), {name: tuple(values) for name, values in tags.items()}
            sources = {RECORD_FILE: work / RECORD_FILE}
            keep(session, work, Parcel(key, label, sources, {RECORD_FILE: "record"}, {}, move=True, tags=found))

    def records(
        self, kind: str | None = None, *, since: float = 0.0, tags: Mapping[str, str] | None = None
    ) -> tuple[Entry, ...]:
        """Records, newest first. `tags` are SQL patterns (`%` stands for anything, a backslash takes its meaning)."""
        stage = None if kind is None else RECORD + kind
        return tuple(self._session().journal.records(stage, since, tags or {}))

    def record_path(self, entry: Entry) -> Path | None:
        """The file as it was kept; None when it is damaged, which is logged."""
        artifact = self.get(entry.key)
        return None if artifact is None else artifact.path("record")

    def ledger(self) -> Ledger:
        """What happened to work that is done through this store. Close it when it is not needed any more."""
        if not self._read_only:
            self._session()
        return Ledger(self.root, self._session, read_only=self._read_only)

    # using

    def materialize(
        self,
        artifact: Artifact,
        destination: Path,
        *,
        link: bool = False,
        overwrite: bool = False,
        beside: Sequence[Path] | None = None,
    ) -> Path:
        """Write the artifact as a folder; replaces only files that this wrote and that nobody changed. A folder that
        holds it already is left alone.

        `overwrite` also writes into a folder that holds files of others, which stay as they are.
        Files are clones or copies that may be edited. `link=True` makes read-only hard links where it can:
        for internal use only, since writing through one would damage the store (which notices).
        `beside` are other folders that this wrote: large files that they have too are shared with them, as read-only
        hard links among these folders.
        """
        session = self._session()
        folder = Folder(session, destination, beside)
        with disk_errors(destination, f"write {destination}"), folder.turn():
            folder.check([file.name for file in artifact.files], overwrite=overwrite)
            if not link and folder.holds(artifact):
                return destination
            if link and not session.journal.read_only:
                self._require(session, artifact)
                if folder.link(artifact):
                    return destination
            with self.lease(artifact):
                folder.copy(artifact)
        return destination

    @property
    def writable(self) -> bool:
        return not self._session().journal.read_only

    @contextlib.contextmanager
    def beside_content(self, data: bytes) -> Iterator[Path]:
        """A file in the root, as long as the block lasts: what it refers to by `content_place` is read in place."""
        session = self._writable("open an artifact")
        path = session.passing_file()
        try:
            with disk_errors(self.root, "open an artifact"):
                _fs.write_file(path, data)
            yield path
        finally:
            with contextlib.suppress(OSError):  # the next opening sweeps it
                _fs.unlink(path)

    def check_destination(self, destination: Path, names: Iterable[str] = (), *, overwrite: bool = False) -> None:
        """Refuse a folder that `materialize` would refuse, before the work whose result goes there."""
        folder = Folder(self._session(), destination)
        with disk_errors(destination, f"write {destination}"), folder.turn():
            folder.check(names, overwrite=overwrite)

    @contextlib.contextmanager
    def lease(self, artifact: Artifact) -> Iterator[Artifact]:
        """Keep the artifact from gc, in every process, until the block or this process ends."""
        session = self._session()
        if session.journal.read_only:  # nobody can remove anything either
            self._require(session, artifact)
            yield artifact
            return
        digests = {artifact.digest, *(file.digest for file in artifact.files)}
        with session.hold(digests, "lease an artifact"):
            self._require(session, artifact)
            yield artifact

    def _require(self, session: Session, artifact: Artifact) -> None:
        entry = session.journal.entry(artifact.key.digest)
        with disk_errors(self.root, "read the store"):
            if entry is None or entry.digest != artifact.digest or _verify.checked(session, entry) is None:
                raise damaged(artifact, "one of its files")

    # looking and cleaning

    def entries(self, last: int | None = None) -> tuple[Entry, ...]:
        """Every entry, least recently used first; or only the `last` so many."""
        return tuple(self._session().journal.entries(last=last))

    def find(self, text: str) -> Entry:
        """The entry whose key begins with `text` (or is labelled so); a near miss is named in the error."""
        entries = self.entries()
        found = [entry for entry in entries if entry.key.digest.startswith(text) or entry.label == text]
        if len(found) == 1 and text:
            return found[0]
        if found:
            some = ", ".join(entry.key.digest[:12] for entry in found[:5])
            fix = f"Give more of the key: {some}{', …' if len(found) > 5 else ''}."
            raise UsageError(f"{text!r} names {len(found)} entries", cause="the text is not unique", fix=fix)
        names = {entry.key.digest[: max(len(text), 8)] for entry in entries} | {e.label for e in entries}
        near = difflib.get_close_matches(text, names - {""}, n=1, cutoff=0.5)
        fix = f"Did you mean {near[0]!r}?" if near else "Run `wright cache ls` to see what there is."
        raise UsageError(f"No entry {text!r} in the store", cause=f"{len(entries)} entries, none matches", fix=fix)

    def stats(self) -> StoreStats:
        session = self._session()
        with disk_errors(self.root, "read the store"):
            quarantined = session.blobs.quarantined_bytes()
        entries, records = session.journal.count()
        blobs, size = session.journal.weight()
        return StoreStats(
            path=self.root,
            entries=entries,
            blobs=blobs,
            bytes=size,
            quarantined_bytes=quarantined,
            read_only=session.journal.read_only,
            records=records,
        )

    def verify(self, *, deep: bool = True) -> VerifyReport:
        """Check every blob (`deep`: hash all of them); what is wrong is set aside, so it is never served."""
        with disk_errors(self.root, "verify the store"):
            return _verify.verify(self._session(), deep=deep)

    def gc(
        self, budget_bytes: int, *, dry_run: bool = False, grace_s: float = GRACE_S, records: bool = False
    ) -> GcReport:
        """Shrink to the budget, least recently used first. Never what a live process leases, no record unless asked."""
        policy = _gc.Policy(lambda left: left > budget_bytes, time.time() - grace_s, records)
        return self._collect(policy, dry_run=dry_run)

    def prune(self, *, older_than_s: float, dry_run: bool = False, records: bool = False) -> GcReport:
        """Remove every entry that was not used for so long; records only where they are asked for."""
        policy = _gc.Policy(lambda left: True, time.time() - older_than_s, records)
        return self._collect(policy, dry_run=dry_run)

    def _collect(self, policy: _gc.Policy, *, dry_run: bool) -> GcReport:
        gone: list[Entry] = []
        try:
            return self._collected(policy, gone, dry_run=dry_run)
        except NoRoomError:
            with disk_errors(self.root, "clean the store"):
                first = _gc.make_room(self._session(), policy)
            if not first.freed_bytes:
                raise
        self.close()  # what could not be written is opened again
        try:
            report = self._collected(policy, gone, dry_run=dry_run)
        except NoRoomError:  # all that may go is gone, and the journal will be told when there is room
            return replace(first, removed=_gc.oldest_first({*gone, *first.removed}))
        return replace(report, freed_bytes=report.freed_bytes + first.freed_bytes)

    def _collected(self, policy: _gc.Policy, gone: list[Entry], *, dry_run: bool) -> GcReport:
        session = self._session() if dry_run else self._writable("clean the store")
        with disk_errors(self.root, "clean the store"):
            return _gc.collect(session, policy, gone, dry_run=dry_run)

    # the session of this process

    def _session(self) -> Session:
        with self._guard:
            if not self._sessions or self._sessions[-1].pid != os.getpid():
                # A session from before a fork stays in the list: the parent still uses its connection.
                with disk_errors(self.root, f"open the store at {self.root}"):
                    self._sessions.append(Session(self.root, read_only=self._read_only))
            return self._sessions[-1]

    def _writable(self, doing: str) -> Session:
        session = self._session()
        if session.journal.read_only:
            raise read_only_error(self.root, doing)
        return session


def _close_all(sessions: list[Session]) -> None:
    for session in sessions:
        session.close()
    sessions[:] = [session for session in sessions if session.pid != os.getpid()]


@contextlib.contextmanager
def _announced(session: Session, key: Key) -> Iterator[None]:
    """Tell those who wait who makes this."""
    token = session.token()
    with session.journal.write("begin a stage"):
        session.journal.add_producer(key, token, time.time())
    try:
        yield
    finally:
        # On a full disk the row stays; the next producer overwrites it.
        with contextlib.suppress(StoreError), session.journal.write("end a stage"):
            session.journal.remove_producer(key)
