"""Opening the journal: creating it, refusing a newer one, reading it where nothing can be written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._disk import DENIED, disk_errors
from modelwright._lazy import lazy
from modelwright.errors import StoreError
from modelwright.store import _fs
from modelwright.store._errors import DAMAGED, journal_errors
from modelwright.store._notes import EntryNote, Notes

if TYPE_CHECKING:
    import logging
    import sqlite3

    import filelock
else:
    sqlite3 = lazy("sqlite3")
    filelock = lazy("filelock")
    logging = lazy("logging")

VERSION = 3
FILE = "journal.sqlite"
FOLDERS = ("blobs", "tmp", "locks", "marks", "quarantine", "entries")
_BUSY_S = 60.0
_TABLES = (
    "CREATE TABLE entries (key TEXT PRIMARY KEY, stage TEXT NOT NULL, label TEXT NOT NULL,"
    " manifest TEXT NOT NULL, size INTEGER NOT NULL, created REAL NOT NULL, roles TEXT NOT NULL)",
    "CREATE TABLE refs (key TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (key, digest)) WITHOUT ROWID",
    "CREATE INDEX refs_by_digest ON refs (digest)",
    "CREATE TABLE blobs (digest TEXT PRIMARY KEY, size INTEGER NOT NULL)",
    "CREATE TABLE owners (token TEXT PRIMARY KEY, pid INTEGER NOT NULL, host TEXT NOT NULL, since REAL NOT NULL)",
    "CREATE TABLE holds (hold TEXT NOT NULL, owner TEXT NOT NULL, digest TEXT NOT NULL,"
    " PRIMARY KEY (hold, digest)) WITHOUT ROWID",
    "CREATE INDEX holds_by_digest ON holds (digest)",
    "CREATE TABLE producing (key TEXT PRIMARY KEY, owner TEXT NOT NULL, since REAL NOT NULL)",
)
_TAGS = (
    "CREATE TABLE tags (key TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,"
    " PRIMARY KEY (key, name, value)) WITHOUT ROWID",
    "CREATE INDEX tags_by_value ON tags (name, value)",
)
"""Since version 2: what records are found by."""
_STAGES = ("CREATE INDEX entries_by_stage ON entries (stage, created)",)
"""Since version 3: the newest of a stage."""
_CACHE_KIB = 64 << 10
"""Of the journal's pages: with SQLite's own 2 MiB a sweep of a hundred thousand entries reads most of them again and
again. Who looks up a few keys never fills it."""
_SCANNED_BYTES = 16 << 20
"""A larger journal is not read through whenever it is opened: damage is then found by who comes upon it."""
_SCANS = (
    "entries NOT INDEXED",
    "entries INDEXED BY entries_by_stage WHERE stage > ''",
    "refs",
    "refs INDEXED BY refs_by_digest WHERE digest > ''",
    "blobs NOT INDEXED",
    "owners NOT INDEXED",
    "holds",
    "producing NOT INDEXED",
    "tags",
    "tags INDEXED BY tags_by_value WHERE name > ''",
)


def connect(root: Path, *, read_only: bool = False) -> tuple[sqlite3.Connection, bool]:
    """A connection, and whether it can only read."""
    doing = f"open the store at {root}"
    with disk_errors(root, doing), journal_errors(root, doing):
        if not read_only and _can_write(root):
            try:
                return _connect_writable(root), False
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL):
                    raise
                # A full disk has no room for the shared-memory file; what is there can still be read.
        return _connect_read_only(root), True


def _can_write(root: Path) -> bool:
    try:
        for folder in FOLDERS:
            _fs.make_dir(root / folder)
    except OSError as error:
        if error.errno in DENIED:
            return False
        raise
    return os.access(root, os.W_OK) and (not (root / FILE).exists() or os.access(root / FILE, os.W_OK))


def _connect_writable(root: Path) -> sqlite3.Connection:
    try:
        return _connect_sound(root)
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise
    with filelock.FileLock(root / "locks" / "rebuild.lock"):
        try:
            return _connect_sound(root)  # another process may have been faster
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
        _set_aside(root)
        return _connect_sound(root)


def _connect_sound(root: Path) -> sqlite3.Connection:
    if (root / DAMAGED).exists():
        raise sqlite3.DatabaseError(DAMAGED)
    connection = _open(str(root / FILE))
    try:
        if _checked_version(connection, root) < VERSION:
            # Two processes that switch a new file to WAL at once get "locked" past any busy time-out.
            with filelock.FileLock(root / "locks" / "journal.lock"):
                version = _checked_version(connection, root)
                if version == 0:
                    connection.execute("PRAGMA journal_mode = WAL")
                    _create(connection, Notes(root))
                elif version < VERSION:
                    _upgrade(connection, version)
        connection.execute(f"PRAGMA cache_size = {-_CACHE_KIB}")
        _check(connection, root)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, root: Path) -> None:
    """Looks at every page. SQLite's own check calls good tables without rowids bad."""
    if (root / FILE).stat().st_size > _SCANNED_BYTES:
        return
    for rows in _SCANS:
        connection.execute(f"SELECT count(*) FROM {rows}").fetchone()


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """A full, locked or unreadable disk is no damage; a table that is not there is, and what a query found."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    known = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    return known or str(error) == DAMAGED or "no such table" in str(error)


def _set_aside(root: Path) -> None:
    """Where `prune` empties it. The log of a damaged journal must not be played into the new one."""
    _logger().warning("the journal of the store was damaged: it is rebuilt from the notes beside it")
    for name in (f"{FILE}-wal", f"{FILE}-shm", FILE):
        if (root / name).exists():
            _fs.rename(root / name, root / "quarantine" / f"{name}-{os.urandom(4).hex()}")
    _fs.unlink(root / DAMAGED)


def _logger() -> logging.Logger:
    return logging.getLogger(__name__)


def _connect_read_only(root: Path) -> sqlite3.Connection:
    """Without a journal the store is empty. With one, SQLite reads it without writing anything beside it."""
    if not (root / FILE).exists():
        return _in_memory(root)
    # Without a log nobody is at work here, and SQLite would leave files of its own beside the journal.
    quiet = not (root / f"{FILE}-wal").exists()
    try:
        return _reader(root, "immutable=1" if quiet else "mode=ro")
    except sqlite3.OperationalError:  # no way to create the shared-memory file: nobody writes here
        pass
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise
        return _in_memory(root)
    return _reader(root, "immutable=1")


def _reader(root: Path, how: str) -> sqlite3.Connection:
    connection = _open(f"{(root / FILE).as_uri()}?{how}")
    try:
        if _checked_version(connection, root) < VERSION:  # nobody can upgrade it here
            connection.close()
            return _in_memory(root)
        _check(connection, root)
    except BaseException:
        connection.close()
        raise
    return connection


def _in_memory(root: Path) -> sqlite3.Connection:
    connection = _open(":memory:")
    _create(connection, Notes(root))
    return connection


def _open(target: str) -> sqlite3.Connection:
    is_uri = target.startswith("file:")
    return sqlite3.connect(target, timeout=_BUSY_S, isolation_level=None, check_same_thread=False, uri=is_uri)


def _create(connection: sqlite3.Connection, notes: Notes) -> None:
    """With what the notes of an earlier journal tell, in one step: it is never half rebuilt."""
    _fs.step("create the journal")
    connection.execute("BEGIN IMMEDIATE")
    for table in (*_TABLES, *_TAGS, *_STAGES):
        connection.execute(table)
    for note in notes.usable():
        insert(connection, note)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    _fs.step("commit the new journal")
    connection.execute("COMMIT")


def _upgrade(connection: sqlite3.Connection, version: int) -> None:
    _fs.step("upgrade the journal")
    connection.execute("BEGIN IMMEDIATE")
    for table in (*(_TAGS if version < 2 else ()), *_STAGES):
        connection.execute(table)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    _fs.step("commit the upgrade")
    connection.execute("COMMIT")


def insert(connection: sqlite3.Connection, note: EntryNote) -> None:
    """The rows of an entry; inside a transaction."""
    entry, key = note.entry, note.entry.key
    row = (key.digest, key.stage, entry.label, entry.digest, entry.size, entry.created, json.dumps(entry.roles))
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    for digest, size in note.blobs.items():
        connection.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (digest, size))
        connection.execute("INSERT INTO refs VALUES (?, ?)", (key.digest, digest))
    for name, values in entry.tags.items():
        rows = [(key.digest, name, value) for value in values]
        connection.executemany("INSERT OR IGNORE INTO tags VALUES (?, ?, ?)", rows)


def _checked_version(connection: sqlite3.Connection, root: Path) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise StoreError(
            f"The store at {root} was written by a newer modelwright",
            cause=f"its journal has version {version}, this one reads up to {VERSION}",
            fix="Upgrade modelwright, or set MODELWRIGHT_HOME to another folder for this version.",
        )
    return int(version)
