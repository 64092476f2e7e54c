"""Opening the journal: creating it, refusing a newer one, reading it where nothing can be written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._disk import DENIED, disk_errors
from modelwright._lazy import lazy
from modelwright.errors import StoreError
from modelwright.store import _fs
from modelwright.store._errors import journal_errors

if TYPE_CHECKING:
    import sqlite3

    import filelock
else:
    sqlite3 = lazy("sqlite3")
    filelock = lazy("filelock")

VERSION = 1
FILE = "journal.sqlite"
FOLDERS = ("blobs", "tmp", "locks", "marks", "quarantine")
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


def connect(root: Path) -> tuple[sqlite3.Connection, bool]:
    """A connection, and whether it can only read."""
    doing = f"open the store at {root}"
    with disk_errors(root, doing), journal_errors(root, doing):
        if _can_write(root):
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
    connection = _open(str(root / FILE))
    try:
        if _checked_version(connection, root) == 0:
            # Two processes that switch a new file to WAL at once get "locked" past any busy time-out.
            with filelock.FileLock(root / "locks" / "journal.lock"):
                if _checked_version(connection, root) == 0:
                    connection.execute("PRAGMA journal_mode = WAL")
                    _create(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_read_only(root: Path) -> sqlite3.Connection:
    """Without a journal the store is empty. With one, SQLite reads it without writing anything beside it."""
    if not (root / FILE).exists():
        connection = _open(":memory:")
        _create(connection)
        return connection
    connection = _open(f"{(root / FILE).as_uri()}?mode=ro")
    try:
        _checked_version(connection, root)
    except sqlite3.OperationalError:  # no way to create the shared-memory file: nobody writes here
        connection.close()
        connection = _open(f"{(root / FILE).as_uri()}?immutable=1")
        _checked_version(connection, root)
    return connection


def _open(target: str) -> sqlite3.Connection:
    is_uri = target.startswith("file:")
    return sqlite3.connect(target, timeout=_BUSY_S, isolation_level=None, check_same_thread=False, uri=is_uri)


def _create(connection: sqlite3.Connection) -> None:
    _fs.step("create the journal")
    connection.execute("BEGIN IMMEDIATE")
    for table in _TABLES:
        connection.execute(table)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    _fs.step("commit the new journal")
    connection.execute("COMMIT")


def _checked_version(connection: sqlite3.Connection, root: Path) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise StoreError(
            f"The store at {root} was written by a newer modelwright",
            cause=f"its journal has version {version}, this one reads up to {VERSION}",
            fix="Upgrade modelwright, or set MODELWRIGHT_HOME to another folder for this version.",
        )
    return int(version)
