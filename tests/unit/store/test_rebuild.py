"""A damaged journal is rebuilt from the notes beside it: nothing that was made is made again."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from modelwright.errors import StoreError
from modelwright.store import Store, _schema


def cut(root: Path) -> None:
    os.truncate(root / "journal.sqlite", 5000)


def scribble(root: Path) -> None:
    with (root / "journal.sqlite").open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom((root / "journal.sqlite").stat().st_size - 4096))


HARM = {
    "emptied": lambda root: os.truncate(root / "journal.sqlite", 0),
    "no database": lambda root: (root / "journal.sqlite").write_bytes(b"not a database" * 1000),
    "cut off": cut,
    "scribbled over": scribble,
    "removed": lambda root: (root / "journal.sqlite").unlink(),
}
harmed = pytest.mark.parametrize("harm", HARM.values(), ids=HARM)


@pytest.fixture
def filled(root, key, writer):
    with Store(root) as store:
        for number in range(3):
            store.once(key(n=number), writer({"m": b"%d" % number, "same": b"shared"}), label=f"entry {number}")
        return store.entries()


@harmed
def test_every_entry_is_served_again(root, key, writer, filled, harm, content) -> None:
    harm(root)
    with Store(root) as store:
        assert {(e.key, e.label, e.digest, e.roles) for e in store.entries()} == {
            (e.key, e.label, e.digest, e.roles) for e in filled
        }
        for number in range(3):
            again = store.once(key(n=number), writer({"never": b""}))
            assert not again.produced
            assert content(again.artifact) == {"m": b"%d" % number, "same": b"shared"}
        assert store.verify().clean
        assert not store.verify().orphans
        assert store.once(key(n=4), writer({"m": b"4"})).produced
        store.gc(0, grace_s=0)
    assert not list((root / "quarantine").iterdir())
    assert not list((root / "blobs").glob("*/*"))


def test_damage_in_a_journal_too_large_to_be_read_through_is_mended_once_somebody_comes_upon_it(
    root, key, writer, filled, monkeypatch
) -> None:
    monkeypatch.setattr(_schema, "_SCANNED_BYTES", 0)
    scribble(root)
    with pytest.raises(StoreError), Store(root) as store:
        store.entries()
    with Store(root) as store:
        assert [entry.key for entry in store.entries()] == [entry.key for entry in filled]


def test_a_journal_of_an_earlier_version_learns_what_this_one_keeps(root, filled) -> None:
    with sqlite3.connect(root / "journal.sqlite") as journal:
        journal.execute("DROP INDEX entries_by_stage")
        journal.execute("PRAGMA user_version = 2")
    journal.close()
    with Store(root) as store:
        assert store.entries() == filled
        assert len(store.recent(filled[0].key.stage, 2)) == 2


def test_what_was_pruned_stays_away_and_what_lacks_content_is_left_out(root, key, filled) -> None:
    with Store(root) as store:
        artifact = store.get(key(n=0))
        artifact.path_of("m").chmod(0o644)
        artifact.path_of("m").unlink()
    (root / "entries" / key(n=1).digest).write_bytes(b"torn")
    cut(root)
    with Store(root) as store:
        assert [entry.key for entry in store.entries()] == [key(n=2)]
        store.gc(0, grace_s=0)
    assert not list((root / "entries").iterdir())
    cut(root)
    with Store(root) as store:
        assert store.entries() == ()


def test_a_disk_that_cannot_be_written_serves_what_the_notes_tell(small_disk, key, writer) -> None:
    root = small_disk / "store"
    with Store(root) as store:
        store.once(key(), writer({"m": b"1"}))
    (root / "journal.sqlite").write_bytes(b"not a database" * 1000)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with Store(root) as store:
        assert store.get(key()) is not None


def test_damage_that_only_a_query_meets_is_rebuilt_by_the_next_command(root, key, writer, filled, monkeypatch) -> None:
    monkeypatch.setattr(_schema, "_SCANS", ())
    scribble(root)
    with pytest.raises(StoreError, match="the journal is damaged") as caught, Store(root) as store:
        store.entries()
    assert "same command again" in caught.value.fix
    with Store(root) as store:
        assert len(store.entries()) == 3


def test_a_newer_journal_is_not_taken_for_a_damaged_one(root, filled) -> None:
    with sqlite3.connect(root / "journal.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(Exception, match="newer modelwright"), Store(root) as store:
        store.entries()
