"""The ledger: what happened to items of work, in the order in which it happened, and whose they are now.

Events are added, never changed: whoever is killed loses nothing but the work it was at. SQLite in WAL mode, in a file
of its own, so that a damaged journal does not take it along.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._disk import read_only_error
from modelwright._json import plain
from modelwright._lazy import lazy
from modelwright.store._errors import journal_errors
from modelwright.store._session import Session

if TYPE_CHECKING:
    import socket
    import sqlite3

    import filelock
else:
    filelock = lazy("filelock")
    socket = lazy("socket")
    sqlite3 = lazy("sqlite3")

FILE = "ledger.sqlite"
_BUSY_S = 60.0
_TABLES = (
    "CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY, at REAL NOT NULL, item TEXT NOT NULL,"
    " state TEXT NOT NULL, worker TEXT NOT NULL, note TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS events_by_item ON events (item, seq)",
    "CREATE TABLE IF NOT EXISTS latest (item TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS claims (item TEXT PRIMARY KEY, owner TEXT NOT NULL, worker TEXT NOT NULL)"
    " WITHOUT ROWID",
)
_EVENT = "SELECT seq, at, item, state, worker, note FROM events"


@dataclass(frozen=True)
class LedgerEvent:
    """One thing that happened to `item`. `worker` is who wrote it, `note` what it knows."""

    seq: int
    at: float
    item: str
    state: str
    worker: str
    note: Mapping[str, Any] = field(hash=False)


class Ledger:
    """Safe for many threads and processes. A claim holds until it is released or its process ends, however it ends."""

    def __init__(self, root: Path, session: Callable[[], Session], *, read_only: bool = False) -> None:
        self._root, self._session, self._read_only = root, session, read_only
        self._guard = threading.RLock()
        self._opened: tuple[int, sqlite3.Connection] | None = None

    def close(self) -> None:
        with self._guard:
            if self._opened is not None and self._opened[0] == os.getpid():
                self._opened[1].close()
            self._opened = None

    # what happened

    def append(self, item: str, state: str, note: Mapping[str, Any] | None = None) -> None:
        self.append_all([(item, state, note or {})])

    def append_all(self, events: Iterable[tuple[str, str, Mapping[str, Any]]]) -> None:
        """All of them, or none."""
        worker, now = _worker(), time.time()
        with self._write("note what happened") as db:
            for item, state, note in events:
                text = json.dumps(plain(dict(note)), allow_nan=False, separators=(",", ":"))
                row = (now, item, state, worker, text)
                seq = db.execute("INSERT INTO events (at, item, state, worker, note) VALUES (?, ?, ?, ?, ?)", row)
                db.execute("INSERT OR REPLACE INTO latest VALUES (?, ?)", (item, seq.lastrowid))

    def latest(self) -> dict[str, LedgerEvent]:
        """The last event of every item."""
        return {event.item: event for event in self.each_latest()}

    def each_latest(self) -> Iterator[LedgerEvent]:
        """The same, one after the other: of a large matrix they take more room than what is made of them."""
        return map(_event, self._rows(f"{_EVENT} JOIN latest USING (item, seq)"))

    def last(self, item: str) -> LedgerEvent | None:
        found = self._rows(f"{_EVENT} JOIN latest USING (item, seq) WHERE item = ?", (item,))
        return _event(found[0]) if found else None

    def events(self, item: str | None = None, *, since: int = 0) -> tuple[LedgerEvent, ...]:
        """What happened after event `since`, to one item or to all, oldest first."""
        where, values = ("seq > ?", (since,)) if item is None else ("item = ? AND seq > ?", (item, since))
        return tuple(map(_event, self._rows(f"{_EVENT} WHERE {where} ORDER BY seq", values)))

    def count(self, item: str, state: str) -> int:
        found = self._rows("SELECT count(*) FROM events WHERE item = ? AND state = ?", (item, state))
        return int(found[0][0]) if found else 0

    # whose it is

    def claim(self, items: Iterable[str]) -> dict[str, str]:
        """Make them ours; those that a live process has stay, with who that is."""
        session = self._session()
        token, taken = session.token(), {}
        with self._write("claim work") as db:
            for item in items:
                held = db.execute("SELECT owner, worker FROM claims WHERE item = ?", (item,)).fetchone()
                if held is not None and held[0] != token and session.is_alive(held[0]):
                    taken[item] = str(held[1])
                else:
                    db.execute("INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", (item, token, _worker()))
        return taken

    def release(self, items: Iterable[str]) -> None:
        token = self._session().token()
        with self._write("release work") as db:
            db.executemany("DELETE FROM claims WHERE item = ? AND owner = ?", [(item, token) for item in items])

    def claimed(self) -> dict[str, str]:
        """Items that a live process has, with who that is."""
        session, alive = self._session(), dict[str, bool]()
        found = {}
        for item, owner, worker in self._rows("SELECT item, owner, worker FROM claims"):
            if alive.setdefault(owner, session.is_alive(owner)):
                found[item] = str(worker)
        return found

    @contextlib.contextmanager
    def _write(self, doing: str) -> Iterator[sqlite3.Connection]:
        if self._read_only:
            raise read_only_error(self._root, doing)
        with self._guard, journal_errors(self._root, doing):
            db = self._db()
            assert db is not None, "one that is written is made"
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    def _rows(self, sql: str, values: Iterable[object] = ()) -> list[Any]:
        with self._guard, journal_errors(self._root, "read the ledger"):
            db = self._db()
            return [] if db is None else db.execute(sql, tuple(values)).fetchall()

    def _db(self) -> sqlite3.Connection | None:
        """That of this process; a copy that came with a fork is not ours to use."""
        if self._opened is None or self._opened[0] != os.getpid():
            found = _reader(self._root) if self._read_only else _writer(self._root)
            if found is None:
                return None
            self._opened = (os.getpid(), found)
        return self._opened[1]


def _writer(root: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(root / FILE, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    if _is_new(connection):
        # Two processes that switch a new file to WAL at once get "locked" past any busy time-out.
        with filelock.FileLock(root / "locks" / "ledger.lock"):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            for table in _TABLES:
                connection.execute(table)
            connection.execute("PRAGMA user_version = 1")
            connection.execute("COMMIT")
    # A kill loses nothing; a power cut may lose the last events, and with them only what they say.
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _reader(root: Path) -> sqlite3.Connection | None:
    path = root / FILE
    if not path.exists():
        return None
    how = "mode=ro" if path.with_name(f"{FILE}-wal").exists() else "immutable=1"
    connection = sqlite3.connect(
        f"{path.as_uri()}?{how}", timeout=_BUSY_S, isolation_level=None, check_same_thread=False, uri=True
    )
    if _is_new(connection):  # somebody is about to make it
        connection.close()
        return None
    return connection


def _is_new(connection: sqlite3.Connection) -> bool:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version) == 0


def _worker() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _event(row: tuple[Any, ...]) -> LedgerEvent:
    seq, at, item, state, worker, note = row
    return LedgerEvent(seq, at, item, state, worker, json.loads(note))
