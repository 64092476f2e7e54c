"""Full, failing and read-only disks: a clear error, nothing partial, and hits while anything can be read."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from modelwright.errors import StoreError
from modelwright.store import Produced, Store, _fs

FILES = {"m.onnx": b"graph", "w/m.data": b"w" * (3 << 20)}


@pytest.mark.parametrize(
    "scenario", ["once", "reuse", "put", "record", "gc", "discard", "materialize", "link", "beside"]
)
def test_a_kill_at_any_step_leaves_a_usable_store(tmp_path, script, result, scenario) -> None:
    steps = result(script("kill_everywhere", tmp_path, scenario))
    commits = [step for step in steps if step.startswith("commit")]
    least = {
        "once": 50,
        "reuse": 80,
        "put": 50,
        "record": 30,
        "gc": 10,
        "discard": 4,
        "materialize": 30,
        "link": 12,
        "beside": 30,
    }
    assert len(steps) >= least[scenario]
    assert commits, steps


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_fails_at_any_step_gives_a_store_error_and_nothing_partial(
    tmp_path, key, writer, content, monkeypatch, code
) -> None:
    failures = 0
    for number in range(1, 200):
        root = tmp_path / "store"
        failed = run_failing(root, key(), writer(FILES), code, number)
        with Store(root) as store:
            report = store.verify()
            assert report.clean
            assert not report.orphans
            assert list((root / "tmp").iterdir()) == []
            found = store.get(key())
            assert found is None or content(found) == FILES
            assert content(store.once(key(), writer(FILES)).artifact) == FILES
        shutil.rmtree(root)
        if failed is None:
            break
        failures += failed
    assert failures > 30
    assert failed is None


def run_failing(root: Path, key, produce, code: int, number: int) -> bool | None:
    """Fail from the n-th step on. None: there were fewer steps. False: that step may fail quietly."""
    count = 0

    def hook(step: str) -> None:
        nonlocal count
        count += 1
        if count >= number:
            raise OSError(code, os.strerror(code))

    store = Store(root)
    _fs.hook = hook
    try:
        store.once(key, produce)
    except StoreError as error:
        return bool(error.cause and error.fix)
    finally:
        _fs.hook = None
        store.close()
    return None if count < number else False


@pytest.mark.parametrize(
    ("code", "says", "fix"),
    [
        (errno.ENOSPC, "disk is full", "Free space"),
        (errno.EDQUOT, "disk is full", "Free space"),
        (errno.EFBIG, "too long", "ulimit -f"),
        (errno.EIO, "reported an error", "wright cache verify"),
        (errno.EROFS, "Read-only", "MODELWRIGHT_HOME"),
        (errno.EACCES, "Permission denied", "MODELWRIGHT_HOME"),
    ],
)
def test_each_failure_is_named_with_its_next_step(store, key, writer, monkeypatch, code, says, fix) -> None:
    def hook(step: str) -> None:
        if step.startswith("fsync m.data"):
            raise OSError(code, os.strerror(code), "m.data")

    monkeypatch.setattr(_fs, "hook", hook)
    with pytest.raises(StoreError) as caught:
        store.once(key(), writer(FILES))
    assert says in f"{caught.value.problem} {caught.value.cause}"
    assert fix in caught.value.fix


def test_a_full_disk_is_named_with_its_free_space(small_disk, key, tmp_path, writer) -> None:
    big = tmp_path / "big"
    big.write_bytes(os.urandom(8 << 20))
    root = small_disk / "store"
    with Store(root) as store:
        small = store.once(key(n="small"), writer({"m": b"small"})).artifact
        with pytest.raises(StoreError) as caught:
            store.put({"big": big}, key=key(), roles={"big": "model"})
        assert "disk is full" in caught.value.problem
        assert "MB free at" in caught.value.cause
        assert str(root) in caught.value.cause
        assert [path for path in root.rglob("*") if path.is_file() and path.stat().st_size > 1 << 20] == []
        assert store.get(key()) is None
        assert store.get(key(n="small")) == small
        assert store.verify().clean
        assert store.once(key(n="next"), writer({"m": b"next"})).produced


def test_a_producer_that_fills_the_disk_gives_a_store_error(small_disk, key) -> None:
    def produce(folder: Path) -> Produced:
        (folder / "m").write_bytes(bytes(8 << 20))
        return Produced({"m": "model"})

    with Store(small_disk / "store") as store:
        with pytest.raises(StoreError, match="full"):
            store.once(key(), produce)
        assert [path for path in (small_disk / "store" / "tmp").rglob("*") if path.is_file()] == []


def test_a_disk_without_a_single_free_byte_still_serves_hits(small_disk, key, writer, tmp_path) -> None:
    root = small_disk / "store"
    with Store(root) as store:
        store.once(key(), writer({"m": b"1"}))
    fill(small_disk / "ballast")
    with Store(root) as store:
        artifact = store.get(key())
        assert artifact is not None
        assert artifact.path("model").read_bytes() == b"1"
        with pytest.raises(StoreError, match="full"):
            store.once(key(n=2), writer({"m": os.urandom(100_000)}))
    (small_disk / "ballast").unlink()
    with Store(root) as store:
        assert store.verify().clean
        assert not store.verify().orphans
        assert store.once(key(n=2), writer({"m": b"2"})).produced


def test_prune_works_without_a_single_free_byte(small_disk, key, writer) -> None:
    root = small_disk / "store"
    with Store(root) as store:
        for number in range(3):
            store.once(key(n=number), writer({"m": os.urandom(1 << 20), "same": b"shared"}))
        store.get(key(n=2))
    fill(small_disk / "ballast")
    with Store(root) as store:
        report = store.gc(3 << 19, grace_s=0)
        assert report.freed_bytes >= 2 << 20
        assert [entry.key for entry in report.removed] == [key(n=0), key(n=1)]
        assert store.get(key(n=2)) is not None
        assert store.verify().clean
        assert not store.verify().orphans
        assert store.once(key(n=4), writer({"m": b"room again"})).produced


def test_prune_frees_what_it_can_though_the_journal_stays_without_room(small_disk, key, writer) -> None:
    root = small_disk / "store"
    with Store(root) as store:
        store.once(key(), writer({"m": b"tiny"}))
    fill(small_disk / "ballast")
    with Store(root) as store:
        assert [entry.key for entry in store.gc(0, grace_s=0).removed] == [key()]
        assert store.get(key()) is None
    (small_disk / "ballast").unlink()
    with Store(root) as store:
        assert store.get(key()) is None
        assert store.once(key(), writer({"m": b"tiny"})).produced


def test_prune_that_may_remove_nothing_says_that_the_disk_is_full(small_disk, key, writer) -> None:
    root = small_disk / "store"
    with Store(root) as store:
        store.once(key(), writer({"m": b"1"}))
    fill(small_disk / "ballast")
    with Store(root) as store, pytest.raises(StoreError, match="full") as caught:
        store.gc(1 << 30)
    assert "--budget 0" in caught.value.fix


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as stream:
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    stream.write(bytes(size))
    assert shutil.disk_usage(path.parent).free == 0


def test_a_read_only_disk_serves_hits_and_refuses_the_rest(small_disk, key, writer, content, tmp_path) -> None:
    root = small_disk / "store"
    files = {"m": b"1", "large.data": os.urandom(3 << 20)}
    with Store(root) as store:
        store.once(key(), writer(files))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    check_read_only(root, key, writer, content, tmp_path, files)


def test_a_read_only_disk_with_an_unfinished_journal_serves_hits(small_disk, key, writer, content, tmp_path) -> None:
    """As after a crash or a copy of a store in use: the newest rows are still in the write-ahead log."""
    with Store(tmp_path / "in use") as store:
        store.once(key(), writer({"m": b"1"}))
        shutil.copytree(tmp_path / "in use", small_disk / "store")
    assert (small_disk / "store" / "journal.sqlite-wal").stat().st_size > 0
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    check_read_only(small_disk / "store", key, writer, content, tmp_path, {"m": b"1"})


def test_a_store_without_write_permission_serves_hits(root, key, writer, content, tmp_path) -> None:
    with Store(root) as store:
        store.once(key(), writer({"m": b"1"}))
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        if os.access(root, os.W_OK):
            pytest.skip("this user may write everywhere")
        check_read_only(root, key, writer, content, tmp_path, {"m": b"1"})
    finally:
        for folder in folders:
            folder.chmod(0o755)


def check_read_only(root: Path, key, writer, content, tmp_path: Path, files: dict[str, bytes]) -> None:
    with Store(root) as store:
        artifact = store.get(key())
        assert artifact is not None
        assert content(artifact) == files
        assert store.once(key(), writer({"m": b"never"})).produced is False
        for link in (False, True):
            out = store.materialize(artifact, tmp_path / "out", link=link)
            assert (out / "m").read_bytes() == files["m"]
        with store.lease(artifact):
            assert store.verify().clean
        assert store.stats().read_only
        assert len(store.entries()) == 1
        for act in (
            lambda: store.once(key(n=2), writer({"m": b"2"})),
            lambda: store.put(out, key=key(n=2), roles={}),
            lambda: store.gc(0),
        ):
            with pytest.raises(StoreError) as caught:
                act()
            assert "cannot be written" in caught.value.cause
            assert "MODELWRIGHT_HOME" in caught.value.fix


def test_a_place_that_cannot_be_made_is_an_empty_read_only_store(small_disk, key, writer) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with Store(small_disk / "none") as store:
        assert store.get(key()) is None
        assert store.entries() == ()
        assert store.stats().quarantined_bytes == 0
        assert store.verify().clean
        with pytest.raises(StoreError):
            store.once(key(), writer({"m": b"1"}))
