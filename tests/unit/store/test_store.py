"""Keeping and finding."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from modelwright.errors import StoreError, UsageError
from modelwright.store import Produced, Store
from modelwright.store._locks import PassingLock


def test_what_was_put_is_found_with_roles_and_notes(store, key, tmp_path) -> None:
    (tmp_path / "m").write_bytes(b"graph")
    (tmp_path / "w").write_bytes(b"weights")
    files = {"model.onnx": tmp_path / "m", "model.onnx.data": tmp_path / "w"}
    roles = {"model.onnx": "quantized", "model.onnx.data": "data"}
    put = store.put(files, key=key(), roles=roles, meta={"opset": 17, "why": None, "ops": ("Conv",)}, label="resnet")
    got = store.get(key())
    assert got == put
    assert got.path("quantized").read_bytes() == b"graph"
    assert got.path_of("model.onnx.data").read_bytes() == b"weights"
    assert got.meta == {"opset": 17, "why": None, "ops": ["Conv"]}
    assert got.size == 12
    (entry,) = store.entries()
    assert (entry.label, entry.key.stage, entry.roles) == ("resnet", "export", ("data", "quantized"))


def test_another_store_object_finds_it_too(root, key, writer, content) -> None:
    with Store(root) as store:
        made = store.once(key(), writer({"m": b"1"})).artifact
    with Store(root) as again:
        assert again.get(key()) == made
        assert content(again.get(key())) == {"m": b"1"}


def test_an_unknown_key_is_none(store, key) -> None:
    assert store.get(key()) is None


def test_same_content_is_one_artifact_digest_and_one_blob(store, key, writer) -> None:
    one = store.once(key(n=1), writer({"m": b"same", "n": b"same"})).artifact
    two = store.once(key(n=2), writer({"n": b"same", "m": b"same"})).artifact
    assert one.digest == two.digest
    assert store.stats().blobs == 2  # one content, one manifest
    assert store.stats().entries == 2


def test_once_produces_the_first_time_only(store, key, writer) -> None:
    assert store.once(key(), writer({"m": b"1"})).produced
    second = store.once(key(), writer({"m": b"2"}))
    assert not second.produced
    assert second.artifact.path("model").read_bytes() == b"1"


def test_files_of_a_producer_are_moved_not_copied(store, key) -> None:
    inodes = []

    def produce(folder: Path) -> Produced:
        (folder / "m").write_bytes(b"big")
        inodes.append((folder / "m").stat().st_ino)
        return Produced({"m": "model"})

    path = store.once(key(), produce).artifact.path("model")
    assert [path.stat().st_ino] == inodes
    assert stat.S_IMODE(path.stat().st_mode) == 0o444


def test_files_of_another_artifact_are_reused_without_a_copy(store, key, writer, content) -> None:
    first = store.once(key(n=1), writer({"part/m": b"graph", "m.data": b"weights"})).artifact
    renamed = tuple(replace(file, name=file.name.removeprefix("part/")) for file in first.files)

    def produce(folder: Path) -> Produced:
        (folder / "note").write_bytes(b"new")
        return Produced({"note": "note"}, reused=renamed)

    second = store.once(key(n=2), produce).artifact
    assert content(second) == {"m": b"graph", "m.data": b"weights", "note": b"new"}
    assert second.path_of("m") == first.path_of("part/m")
    assert store.verify().clean


def test_a_reused_file_that_is_gone_is_an_error_and_nothing_is_kept(store, key, writer) -> None:
    first = store.once(key(n=1), writer({"m": b"graph"})).artifact
    first.path_of("m").unlink()
    with pytest.raises(StoreError, match="damaged or was removed"):
        store.once(key(n=2), lambda folder: Produced({}, reused=first.files))
    assert store.get(key(n=2)) is None


def test_a_file_the_producer_linked_from_elsewhere_stays_untouched(store, key, tmp_path) -> None:
    source = tmp_path / "source.onnx"
    source.write_bytes(b"the user's")

    def produce(folder: Path) -> Produced:
        os.link(source, folder / "m")
        (folder / "s").symlink_to(source)
        return Produced({"m": "model", "s": "copy"})

    artifact = store.once(key(), produce).artifact
    assert artifact.path("copy").read_bytes() == b"the user's"
    assert stat.S_IMODE(source.stat().st_mode) == 0o644
    source.write_bytes(b"changed since")
    assert store.get(key()) == artifact
    assert artifact.path("model").read_bytes() == b"the user's"


def test_what_a_producer_raises_comes_through_and_nothing_stays(store, key, root) -> None:
    def produce(folder: Path) -> Produced:
        (folder / "half").write_bytes(b"half")
        raise LookupError("no such operator")

    with pytest.raises(LookupError, match="operator"):
        store.once(key(), produce)
    assert store.get(key()) is None
    assert [path for path in (root / "tmp").rglob("*") if path.is_file()] == []
    assert list((root / "blobs").rglob("*")) == []


def test_a_stage_that_wrote_nothing_is_an_error(store, key, writer) -> None:
    with pytest.raises(StoreError, match="no file"):
        store.once(key(), writer({}))
    assert store.get(key()) is None


@pytest.mark.parametrize("roles", [{}, {"m": "model", "ghost": "data"}])
def test_every_file_has_a_role_and_every_role_a_file(store, key, roles) -> None:
    def produce(folder: Path) -> Produced:
        (folder / "m").write_bytes(b"1")
        return Produced(roles)

    with pytest.raises(StoreError, match="incomplete"):
        store.once(key(), produce)


def test_a_role_must_name_one_file(store, key, writer) -> None:
    artifact = store.once(key(), writer({"a": b"1", "b": b"2"})).artifact
    with pytest.raises(StoreError) as caught:
        artifact.path("model")
    assert "2 files" in caught.value.problem
    with pytest.raises(StoreError):
        artifact.path("quantized")
    with pytest.raises(StoreError):
        artifact.path_of("c")


def test_threads_of_one_process_produce_once(store, key) -> None:
    made, outcomes, waits = [], [], []

    def produce(folder: Path) -> Produced:
        made.append(1)
        while len(waits) < 5:
            time.sleep(0.01)
        (folder / "m").write_bytes(b"1")
        return Produced({"m": "model"})

    def ask() -> None:
        outcomes.append(store.once(key(), produce, on_wait=waits.append))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert sorted(outcome.produced for outcome in outcomes) == [False] * 5 + [True]
    assert len(waits) == 5
    assert {wait.pid for wait in waits} <= {os.getpid(), None}


def test_a_producer_may_use_the_store_for_other_keys(store, key, writer) -> None:
    def produce(folder: Path) -> Produced:
        inner = store.once(key(n="inner"), writer({"m": b"inner"})).artifact
        (folder / "m").write_bytes(inner.path("model").read_bytes() + b" and outer")
        return Produced({"m": "model"})

    assert store.once(key(n="outer"), produce).artifact.path("model").read_bytes() == b"inner and outer"


def test_a_read_only_source_folder_works(store, key, tmp_path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "model.onnx").write_bytes(b"graph")
    (source / "model.onnx").chmod(0o444)
    source.chmod(0o555)
    before = (source / "model.onnx").stat()
    artifact = store.put(source, key=key(), roles={"model.onnx": "model"})
    after = (source / "model.onnx").stat()
    source.chmod(0o755)
    assert artifact.path("model").read_bytes() == b"graph"
    assert (before.st_mode, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_mode,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )


def test_read_only_files_and_folders_of_a_producer_are_taken(store, key, root) -> None:
    def produce(folder: Path) -> Produced:
        (folder / "sub").mkdir()
        (folder / "sub" / "m").write_bytes(b"1")
        (folder / "m").write_bytes(b"2")
        (folder / "m").chmod(0o444)
        return Produced({"sub/m": "data", "m": "model"})

    assert store.once(key(), produce).artifact.path("model").read_bytes() == b"2"
    assert [path for path in (root / "tmp").rglob("*") if path.is_file()] == []


def test_a_missing_source_is_a_clear_error(store, key, tmp_path) -> None:
    with pytest.raises(StoreError) as caught:
        store.put({"m": tmp_path / "absent"}, key=key(), roles={"m": "model"})
    assert "absent" in caught.value.cause


def test_an_entry_is_found_by_a_unique_beginning(store, key, writer) -> None:
    store.once(key(n=1), writer({"m": b"1"}), label="resnet-50 export")
    store.once(key(n=2), writer({"m": b"2"}), label="bert export")
    assert store.find(key(n=1).digest[:10]).label == "resnet-50 export"
    assert store.find("bert export").key == key(n=2)
    with pytest.raises(UsageError) as caught:
        store.find("resnet-5 export")
    assert "resnet-50 export" in caught.value.fix
    with pytest.raises(UsageError) as caught:
        store.find("")
    assert "names 2" in caught.value.problem


def test_a_journal_of_a_newer_version_is_refused_with_the_next_step(root, key) -> None:
    with Store(root) as store:
        store.get(key())
    journal = sqlite3.connect(root / "journal.sqlite")
    journal.execute("PRAGMA user_version = 99")
    journal.close()
    with pytest.raises(StoreError) as caught:
        Store(root).get(key())
    assert "99" in caught.value.cause
    assert "Upgrade" in caught.value.fix


def test_the_default_place_follows_the_environment(monkeypatch, tmp_path, key, writer) -> None:
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "elsewhere"))
    with Store() as store:
        store.once(key(), writer({"m": b"1"}))
        assert store.stats().path == tmp_path / "elsewhere" / "store"
    assert (tmp_path / "elsewhere" / "store" / "journal.sqlite").exists()


def test_no_lock_is_left_of_what_was_made_or_written(store, key, writer, root, tmp_path) -> None:
    before = {path.name for path in (root / "locks").iterdir()} if root.exists() else set()
    for number in range(5):
        made = store.once(key(n=number), writer({"m": b"%d" % number})).artifact
        store.materialize(made, tmp_path / f"out{number}")
    left = {path.name for path in (root / "locks").iterdir()} - before
    assert left <= {"journal.lock", "owners"}


def test_a_lock_that_goes_with_its_file_is_still_held_by_one_at_a_time(tmp_path) -> None:
    inside, most, turns = [], [0], 60

    def work() -> None:
        for _ in range(turns):
            with PassingLock(tmp_path / "a.lock"):
                inside.append(1)
                most[0] = max(most[0], len(inside))
                inside.pop()

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(work) for _ in range(6)]:
            done.result()
    assert most == [1]
    assert not (tmp_path / "a.lock").exists()


def test_a_closed_store_leaves_no_temp_file_and_no_owner(root, key, writer) -> None:
    with Store(root) as store:
        store.once(key(), writer({"m": b"1"}))
    assert list((root / "tmp").iterdir()) == []
    assert list((root / "locks" / "owners").iterdir()) == []
    assert store.get(key()) is not None  # opens again
    store.close()


def test_a_store_used_before_a_fork_works_in_the_child(root, key, writer) -> None:
    program = (
        "import os, sys; from pathlib import Path; from modelwright.store import *\n"
        "key = stage_key(stage='s', version='1', libraries={}, inputs={}, params=0)\n"
        "def make(folder):\n"
        "    (folder / 'm').write_bytes(b'1'); return Produced({'m': 'model'})\n"
        "store = Store(Path(sys.argv[1])); artifact = store.once(key, make).artifact\n"
        "with store.lease(artifact):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        store.gc(0, grace_s=0); found = store.get(key); store.close(); os._exit(0 if found else 7)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "    assert store.get(key)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(root)], check=True)
    with Store(root) as store:
        assert store.verify().clean


def test_importing_the_store_loads_neither_sqlite_nor_filelock() -> None:
    program = "import sys, modelwright.store; print({'sqlite3', 'filelock', 'shutil'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
