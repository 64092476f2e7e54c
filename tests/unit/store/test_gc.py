"""Collection keeps to the budget and to the leases."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest

from modelwright.errors import StoreError
from modelwright.store import Key, Store, _fs, _gc

KB = 1000


def age(root: Path, key: Key, seconds: float) -> None:
    journal = sqlite3.connect(root / "journal.sqlite", timeout=10)
    journal.execute("UPDATE entries SET created = created - ? WHERE key = ?", (seconds, key.digest))
    journal.commit()
    journal.close()


def left(store: Store) -> list[Key]:
    return sorted(entry.key for entry in store.entries())


@pytest.fixture
def three(store, key, writer, root) -> list[Key]:
    """Three entries of 10 kB, the first one used longest ago."""
    keys = [key(n=number) for number in range(3)]
    for number, one in enumerate(keys):
        store.once(one, writer({"m": bytes([number]) * 10 * KB}))
        age(root, one, 1000 * (3 - number))
    return keys


def test_least_recently_used_goes_first_until_the_budget_holds(store, three) -> None:
    report = store.gc(22 * KB)
    assert [entry.key for entry in report.removed] == [three[0]]
    assert left(store) == sorted(three[1:])
    assert report.kept_bytes <= 22 * KB
    assert report.freed_bytes > 10 * KB


def test_a_hit_makes_an_entry_recent(store, three) -> None:
    assert store.get(three[0]) is not None
    assert [entry.key for entry in store.gc(22 * KB, grace_s=0).removed] == [three[1]]


def test_a_hit_does_not_write_the_journal(store, three, root) -> None:
    journal = sqlite3.connect(root / "journal.sqlite")
    changes = "PRAGMA data_version"
    before = journal.execute(changes).fetchone()
    store.materialize(store.get(three[0]), root.parent / "out", link=True)
    assert journal.execute(changes).fetchone() == before
    store.gc(0)
    assert journal.execute(changes).fetchone() != before
    journal.close()


def test_notes_about_what_is_gone_are_removed(store, three, root) -> None:
    store.get(three[0])
    assert [path.name for path in (root / "marks").iterdir()] == [three[0].digest]
    store.gc(0, grace_s=0)
    assert list((root / "marks").iterdir()) == []


def test_a_dry_run_says_the_same_and_removes_nothing(store, three) -> None:
    planned = store.gc(0, dry_run=True)
    assert left(store) == sorted(three)
    done = store.gc(0)
    assert done.removed == planned.removed
    assert done.freed_bytes == planned.freed_bytes


def test_what_was_used_a_moment_ago_is_spared(store, key, writer) -> None:
    store.once(key(), writer({"m": b"new"}))
    assert store.gc(0).removed == ()
    assert len(store.gc(0, grace_s=0).removed) == 1


def test_content_shared_with_an_entry_that_stays_is_kept(store, key, writer, root, content) -> None:
    store.once(key(n=1), writer({"m": b"shared" * 1000, "a": b"1"}))
    age(root, key(n=1), 1000)
    store.once(key(n=2), writer({"m": b"shared" * 1000, "a": b"2"}))
    store.gc(6 * KB + 300)
    assert left(store) == [key(n=2)]
    assert content(store.get(key(n=2))) == {"m": b"shared" * 1000, "a": b"2"}


def test_blobs_are_gone_from_the_disk(store, three, root) -> None:
    store.gc(0)
    assert list((root / "blobs").glob("*/*")) == []


def test_a_lease_keeps_the_oldest(store, three) -> None:
    with store.lease(store.get(three[0])):
        report = store.gc(0, grace_s=0)
        assert report.leased == 1
        assert left(store) == [three[0]]
        assert store.get(three[0]) is not None
    store.gc(0, grace_s=0)
    assert left(store) == []


def test_two_leases_of_one_artifact_end_one_by_one(store, three) -> None:
    artifact = store.get(three[0])
    with store.lease(artifact):
        with store.lease(artifact):
            pass
        store.gc(0, grace_s=0)
        assert left(store) == [three[0]]


def test_a_lease_of_another_live_process_counts_and_of_a_dead_one_does_not(store, three, root, script) -> None:
    child = script("hold_lease", root, three[0].digest)
    assert child.stdout.readline() == "leased\n"
    store.gc(0, grace_s=0)
    assert left(store) == [three[0]]
    child.kill()
    child.wait()
    store.gc(0, grace_s=0)
    assert left(store) == []


def test_leasing_what_is_gone_is_an_error(store, three) -> None:
    artifact = store.get(three[0])
    store.gc(0, grace_s=0)
    with pytest.raises(StoreError), store.lease(artifact):
        pass


def test_prune_removes_by_age(store, three) -> None:
    report = store.prune(older_than_s=1500)
    assert sorted(entry.key for entry in report.removed) == sorted(three[:2])
    assert left(store) == [three[2]]


def test_files_that_are_not_ours_survive(store, three, root) -> None:
    others = [root.parent / "tmp_model.onnx", root / "blobs" / "README", root / "blobs" / "00" / "notes"]
    for path in others:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"foreign")
    (root.parent / "outside").mkdir()
    (root.parent / "outside" / "f").write_bytes(b"f")
    (root / "tmp" / "link").symlink_to(root.parent / "outside")
    store.gc(0)
    assert all(path.read_bytes() == b"foreign" for path in others)
    assert (root.parent / "outside" / "f").read_bytes() == b"f"


def test_the_quarantine_is_emptied(store, three, root) -> None:
    path = store.get(three[0]).path("model")
    path.chmod(0o644)
    path.write_bytes(b"x" * 10 * KB)
    assert store.get(three[0]) is None
    assert store.stats().quarantined_bytes == 10 * KB
    store.gc(10**9)
    assert store.stats().quarantined_bytes == 0


def test_a_store_waits_for_nobody_that_is_dead(root, key, writer, script, result, tmp_path) -> None:
    """A producer killed in the middle: the next one takes over at once."""
    (tmp_path / "marks").mkdir()
    child = script("ask_once", root, tmp_path / "marks", 60)
    while not list((tmp_path / "marks").iterdir()):
        time.sleep(0.01)
    child.kill()
    child.wait()
    again = result(script("ask_once", root, tmp_path / "marks", 0))
    assert again["produced"]
    assert list((root / "tmp").iterdir()) == []


def test_locks_of_the_dead_go_when_nobody_used_them_for_a_day(store, key, writer, root) -> None:
    locks = [root / "locks" / f"{key(n=number).digest}.lock" for number in range(3)]
    for number, lock in enumerate(locks):
        store.once(key(n=number), writer({"m": b"%d" % number}))
        lock.touch()
    for path in locks[:2]:
        os.utime(path, (0, 0))
    with filelock.FileLock(locks[1]):
        os.utime(locks[1], (0, 0))
        store.gc(1 << 30)
        assert [path.exists() for path in locks] == [False, True, True]
    assert not store.once(key(n=0), writer({"never": b""})).produced


@pytest.fixture
def in_short_turns(monkeypatch) -> None:
    """As in a store of very many: one entry, one file for each transaction."""
    monkeypatch.setattr(_gc, "_BATCH", 1)
    monkeypatch.setattr(_gc, "_TURN_S", 0.0)
    monkeypatch.setattr(_gc, "_PAUSE_S", 0.0)


def at_steps(monkeypatch, act: Callable[[str], None]) -> None:
    """What happens beside the collection, at its steps; steps of what it does itself do not count."""

    def hook(step: str) -> None:
        monkeypatch.setattr(_fs, "hook", None)
        act(step)
        monkeypatch.setattr(_fs, "hook", hook)

    monkeypatch.setattr(_fs, "hook", hook)


def test_builds_go_on_between_the_transactions_of_a_collection(
    store, three, root, key, writer, content, in_short_turns, monkeypatch
) -> None:
    made: dict[Key, dict[str, bytes]] = {}
    with Store(root) as other:

        def put(step: str) -> None:
            if step.startswith("committed"):
                # The same content as an entry that goes, and its own.
                made[key(put=len(made))] = {"m": bytes([len(made) % 3]) * 10 * KB, "own": str(len(made)).encode()}
                other.once(list(made)[-1], writer(list(made.values())[-1]))

        at_steps(monkeypatch, put)
        report = store.gc(0, grace_s=60)
        monkeypatch.setattr(_fs, "hook", None)
        assert len(made) > 10
        assert [entry.key for entry in report.removed] == three
        assert {one: content(other.get(one)) for one in made} == made
        assert other.verify().clean


def test_what_is_used_after_the_plan_was_made_stays(store, three, root, in_short_turns, monkeypatch) -> None:
    first, second, third = sorted(three, key=lambda one: one.digest)
    with Store(root) as other, contextlib.ExitStack() as leases:
        found = {one: other.get(one) for one in three}
        for one in three:
            os.utime(root / "marks" / one.digest, (0, 0))
        seen: list[str] = []

        def use(step: str) -> None:
            seen.append(step)
            if seen.count("committed: remove old entries") == 1 and step.startswith("committed"):
                other.get(second)
                leases.enter_context(other.lease(found[third]))

        at_steps(monkeypatch, use)
        report = store.prune(older_than_s=500)
        monkeypatch.setattr(_fs, "hook", None)
        assert [entry.key for entry in report.removed] == [first]
        assert report.kept_bytes == sum(entry.size for entry in store.entries()) + _manifests(root, store)
        assert left(store) == sorted([second, third])
        assert store.verify().clean


def _manifests(root: Path, store: Store) -> int:
    return sum((root / "blobs" / entry.digest[:2] / entry.digest).stat().st_size for entry in store.entries())


def test_a_collection_that_is_interrupted_leaves_whole_entries_and_the_next_one_ends_it(
    store, three, root, content, in_short_turns, monkeypatch
) -> None:
    def interrupt(step: str) -> None:
        if step == "commit: delete unused content":
            raise KeyboardInterrupt

    at_steps(monkeypatch, interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.gc(0, grace_s=0)
    monkeypatch.setattr(_fs, "hook", None)
    assert store.verify().clean
    assert left(store) == []
    assert store.gc(0, grace_s=0).orphans > 0
    assert list((root / "blobs").glob("*/*")) == list((root / "entries").iterdir()) == []
