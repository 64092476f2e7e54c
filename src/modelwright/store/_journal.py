"""The journal: which key has which content, who holds what. SQLite in WAL mode.

Its write lock is the store's one exclusive lock: blobs are put in place, removed and quarantined only inside
`write()`. So a sweep never sees half of a put, and a put never builds on a blob that a sweep is removing.
"""

from __future__ import annotations

import contextlib
import functools
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._disk import disk_errors, read_only_error
from modelwright._lazy import lazy
from modelwright.store import _fs
from modelwright.store._errors import journal_errors
from modelwright.store._key import RECORD, Key
from modelwright.store._marks import Marks
from modelwright.store._notes import EntryNote, Notes
from modelwright.store._schema import connect, insert
from modelwright.store._types import Entry, Waiting

if TYPE_CHECKING:
    import sqlite3
else:
    sqlite3 = lazy("sqlite3")

_ENTRY = "SELECT key, stage, label, manifest, size, created, roles FROM entries"
_CREATED = 5  # its place among them
_IS_RECORD = f"stage LIKE '{RECORD}%'"


class Journal:
    """One connection, shared by the threads of one process."""

    def __init__(self, root: Path, *, read_only: bool = False) -> None:
        self._root = root
        self._guard = threading.RLock()
        self._db, self.read_only = connect(root, read_only=read_only)
        self.marks = Marks(root, read_only=read_only)
        self.notes = Notes(root)

    def close(self) -> None:
        with self._guard:
            self._db.close()

    @contextlib.contextmanager
    def write(self, doing: str, *, durable: bool = False) -> Iterator[None]:
        """One transaction under the exclusive lock; nothing of it remains if the body fails.

        `durable` survives a power cut. Without it the journal stays sound, but may forget the last commits.
        """
        if self.read_only:
            raise read_only_error(self._root, doing)
        with self._guard, journal_errors(self._root, doing):
            if self._in_transaction():  # ours, since we hold the guard: part of the outer step
                yield
                return
            self._step("begin", doing)
            self._db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._step("commit", doing)
                self._db.execute("COMMIT")
            except BaseException:
                if self._in_transaction():  # SQLite rolls back on its own when the disk is full
                    self._db.execute("ROLLBACK")
                raise
            self._step("committed", doing)

    def _step(self, moment: str, doing: str) -> None:
        with disk_errors(self._root, doing):
            _fs.step(f"{moment}: {doing}")

    def _in_transaction(self) -> bool:
        return self._db.in_transaction

    # entries

    def entry(self, key: str) -> Entry | None:
        rows = self._rows(f"{_ENTRY} WHERE key = ?", (key,))
        return self._entry(rows[0]) if rows else None

    def entries(self, *, records: bool = False, last: int | None = None) -> list[Entry]:
        """What can be made again, least recently used first; with `records`, what cannot; the `last` so many."""
        rows, uses = self._rows(f"{_ENTRY} WHERE {'' if records else 'NOT '}{_IS_RECORD}"), self.marks.uses()
        used = [(max(row[_CREATED], uses.get(row[0], 0.0)), row[0], row) for row in rows]
        used.sort(key=itemgetter(0, 1))
        first = 0 if last is None else max(0, len(used) - last)
        return [_entry(row, when) for when, _, row in used[first:]]

    def count(self) -> tuple[int, int]:
        """How many entries can be made again, and how many cannot."""
        ((every, records),) = self._rows(f"SELECT count(*), coalesce(sum({_IS_RECORD}), 0) FROM entries")
        return every - records, records

    def weight(self) -> tuple[int, int]:
        """How many blobs entries need, and what they take."""
        needed = "EXISTS (SELECT 1 FROM refs WHERE refs.digest = blobs.digest)"
        ((blobs, size),) = self._rows(f"SELECT count(*), coalesce(sum(size), 0) FROM blobs WHERE {needed}")
        return blobs, size

    def records(self, stage: str | None, since: float, wanted: Mapping[str, str]) -> list[Entry]:
        """Records, newest first: of this stage, not older, and with a tag of each name that matches its pattern."""
        wheres = [_IS_RECORD, "created >= ?"]
        values: list[str | float] = [since]
        if stage is not None:
            wheres.append("stage = ?")
            values.append(stage)
        for name, pattern in wanted.items():
            wheres.append("key IN (SELECT key FROM tags WHERE name = ? AND value LIKE ? ESCAPE '\\')")
            values += [name, pattern]
        rows = self._rows(f"{_ENTRY} WHERE {' AND '.join(wheres)} ORDER BY created DESC", values)
        return [replace(entry, tags=self._tags(entry.key.digest)) for entry in map(self._entry, rows)]

    def _tags(self, key: str) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for name, value in self._rows("SELECT name, value FROM tags WHERE key = ?", (key,)):
            found[name] = (*found.get(name, ()), value)
        return found

    def newest(self, stage: str, limit: int) -> list[Entry]:
        query = f"{_ENTRY} WHERE stage = ? ORDER BY created DESC LIMIT ?"
        return [self._entry(row) for row in self._rows(query, (stage, limit))]

    def entries_with(self, digest: str) -> list[Entry]:
        return [self._entry(row) for row in self._rows(f"{_ENTRY} JOIN refs USING (key) WHERE digest = ?", (digest,))]

    def add_entry(self, entry: Entry, blobs: Mapping[str, int]) -> None:
        """`blobs` are the digests and sizes of all its content, the manifest included."""
        self.remove_entry(entry.key.digest)
        note = EntryNote(entry, blobs)
        with journal_errors(self._root, "use the journal of the store"):
            insert(self._db, note)
        self.notes.write(note)

    def remove_entry(self, key: str) -> None:
        self._rows("DELETE FROM refs WHERE key = ?", (key,))
        self._rows("DELETE FROM tags WHERE key = ?", (key,))
        self._rows("DELETE FROM entries WHERE key = ?", (key,))
        self.notes.remove(key)

    def remove_entries(self, keys: Sequence[str]) -> None:
        """Many at once; their notes are left to a sweep."""
        with self._guard, journal_errors(self._root, "use the journal of the store"):
            for table in ("refs", "tags", "entries"):
                self._db.executemany(f"DELETE FROM {table} WHERE key = ?", ((key,) for key in keys))

    # blobs

    def size_of(self, digest: str) -> int | None:
        rows = self._rows("SELECT size FROM blobs WHERE digest = ?", (digest,))
        return rows[0][0] if rows else None

    def forget_blob(self, digest: str) -> None:
        self._rows("DELETE FROM blobs WHERE digest = ?", (digest,))

    def forget_unneeded(self) -> None:
        """What is known of blobs that no entry refers to."""
        self._rows("DELETE FROM blobs WHERE digest NOT IN (SELECT digest FROM refs)")

    def references(self) -> list[tuple[str, str, int]]:
        """(key, digest, size) for every blob that an entry needs."""
        return self._rows("SELECT key, digest, size FROM refs JOIN blobs USING (digest)")

    def needed(self, digests: Iterable[str]) -> set[str]:
        """Those that some entry refers to."""
        return {d for d in digests if self._rows("SELECT 1 FROM refs WHERE digest = ? LIMIT 1", (d,))}

    # owners: processes at work, each alive as long as its lock file is locked

    def add_owner(self, token: str, pid: int, host: str, since: float) -> None:
        self._rows("INSERT INTO owners VALUES (?, ?, ?, ?)", (token, pid, host, since))

    def owners(self) -> set[str]:
        return {token for (token,) in self._rows("SELECT token FROM owners UNION SELECT owner FROM holds")}

    def remove_owner(self, token: str) -> None:
        self._rows("DELETE FROM holds WHERE owner = ?", (token,))
        self._rows("DELETE FROM producing WHERE owner = ?", (token,))
        self._rows("DELETE FROM owners WHERE token = ?", (token,))

    def add_hold(self, hold: str, owner: str, digests: Iterable[str]) -> None:
        for digest in set(digests):
            self._rows("INSERT INTO holds VALUES (?, ?, ?)", (hold, owner, digest))

    def remove_hold(self, hold: str) -> None:
        self._rows("DELETE FROM holds WHERE hold = ?", (hold,))

    def holds_of(self, owner: str) -> set[str]:
        return {digest for (digest,) in self._rows("SELECT digest FROM holds WHERE owner = ?", (owner,))}

    def digests_of_hold(self, hold: str) -> set[str]:
        return {digest for (digest,) in self._rows("SELECT digest FROM holds WHERE hold = ?", (hold,))}

    def add_producer(self, key: Key, owner: str, since: float) -> None:
        self._rows("INSERT OR REPLACE INTO producing VALUES (?, ?, ?)", (key.digest, owner, since))

    def remove_producer(self, key: Key) -> None:
        self._rows("DELETE FROM producing WHERE key = ?", (key.digest,))

    def producer(self, key: Key) -> Waiting:
        query = "SELECT pid, host, p.since FROM producing p JOIN owners o ON p.owner = o.token WHERE key = ?"
        rows = self._rows(query, (key.digest,))
        return Waiting(key, *rows[0]) if rows else Waiting(key, None, None, None)

    def _rows(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
        with self._guard, journal_errors(self._root, "use the journal of the store"):
            return self._db.execute(sql, values).fetchall()

    def _entry(self, row: Sequence[Any]) -> Entry:
        return _entry(row, self.marks.used(row[0]))


def _entry(row: Sequence[Any], used: float) -> Entry:
    key, stage, label, manifest, size, created, roles = row
    return Entry(Key(key, stage), label, manifest, size, created, max(created, used), _roles(roles))


@functools.lru_cache(256)
def _roles(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))
