"""A changed byte is found, set aside, logged, and never served."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from modelwright.errors import StoreError
from modelwright.store import Artifact, Store, _stamp

LARGE = 9 << 20


def flip(path: Path, *, restore_times: bool) -> None:
    before = path.stat()
    path.chmod(0o644)
    with path.open("r+b") as stream:
        stream.seek(path.stat().st_size // 2)
        byte = stream.read(1)
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte[0] ^ 1]))
    path.chmod(before.st_mode)
    if restore_times:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_mtime_ns == before.st_mtime_ns


@pytest.fixture(params=[100, LARGE], ids=["small", "large"])
def artifact(request, store, key, writer) -> Artifact:
    return store.once(key(), writer({"m.onnx": b"graph", "m.data": os.urandom(request.param)})).artifact


times = pytest.mark.parametrize("restore_times", [False, True], ids=["plain", "times restored"])


@times
def test_get_does_not_serve_a_flipped_byte(store, key, artifact, root, restore_times, caplog) -> None:
    flip(artifact.path("data"), restore_times=restore_times)
    assert store.get(key()) is None
    assert "content does not match" in caplog.text
    assert [path.name for path in (root / "quarantine").iterdir()] == [artifact.files[0].digest]
    assert store.entries() == ()


@times
def test_once_makes_it_again(store, key, writer, artifact, restore_times) -> None:
    good = artifact.path("data").read_bytes()
    flip(artifact.path("data"), restore_times=restore_times)
    again = store.once(key(), writer({"m.onnx": b"graph", "m.data": good}))
    assert again.produced
    assert again.artifact.digest == artifact.digest
    assert again.artifact.path("data").read_bytes() == good
    assert store.verify().clean


@times
@pytest.mark.parametrize("link", [False, True])
def test_materialize_does_not_serve_it(store, artifact, tmp_path, restore_times, link) -> None:
    flip(artifact.path("data"), restore_times=restore_times)
    with pytest.raises(StoreError, match="cannot be used"):
        store.materialize(artifact, tmp_path / "out", link=link)
    assert not (tmp_path / "out").exists()
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".wright")] == []


@times
def test_verify_finds_it_and_names_the_entry(store, key, artifact, restore_times) -> None:
    flip(artifact.path("data"), restore_times=restore_times)
    report = store.verify()
    assert not report.clean
    (damage,) = report.damaged
    assert damage.entries == (key(),)
    assert store.verify().clean
    assert store.get(key()) is None


def test_rot_that_changes_no_time_is_found_by_a_deep_verify(root, key, writer) -> None:
    """A disk that rots changes no ctime. Imitated by noting the stamp of the changed file."""
    with Store(root) as store:
        path = store.once(key(), writer({"m": os.urandom(LARGE)})).artifact.path("model")
    flip(path, restore_times=True)
    (root / "marks" / path.name).write_text(str(_stamp.stamp_of(path)))
    with Store(root) as store:
        assert store.verify(deep=False).clean
        assert [damage.digest for damage in store.verify(deep=True).damaged] == [path.name]
        assert store.get(key()) is None


@pytest.mark.parametrize(
    "kept",
    [lambda path, info: 1_000_000_000, lambda path, info: info.st_mtime_ns, lambda path, info: None],
    ids=["creation, as Windows says", "last write, as FAT says", "nothing"],
)
def test_where_no_change_time_is_kept_large_blobs_are_hashed_at_every_hit(root, key, writer, monkeypatch, kept) -> None:
    monkeypatch.setattr(_stamp, "change_time", kept)
    with Store(root) as store:
        path = store.once(key(), writer({"m": os.urandom(LARGE)})).artifact.path("model")
        assert store.get(key()) is not None
        flip(path, restore_times=True)
        assert store.get(key()) is None


def test_truncated_missing_and_empty_blobs_are_misses(store, key, writer, caplog) -> None:
    for number, harm in enumerate([lambda p: os.truncate(p, 3), os.unlink, lambda p: os.truncate(p, 0)]):
        artifact = store.once(key(n=number), writer({"m": b"content %d" % number})).artifact
        artifact.path("model").chmod(0o644)
        harm(artifact.path("model"))
        assert store.get(key(n=number)) is None
    artifact = store.once(key(n="lost"), writer({"m": b"lost"})).artifact
    artifact.path("model").unlink()
    assert [damage.digest for damage in store.verify().missing] == [artifact.files[0].digest]


def test_a_flipped_byte_in_the_manifest_is_a_miss(store, key, writer, root) -> None:
    artifact = store.once(key(), writer({"m": b"1"})).artifact
    flip(root / "blobs" / artifact.digest[:2] / artifact.digest, restore_times=True)
    assert store.get(key()) is None


def test_damage_in_shared_content_drops_every_entry_that_needs_it(store, key, writer) -> None:
    one = store.once(key(n=1), writer({"m": b"shared", "a": b"1"})).artifact
    store.once(key(n=2), writer({"m": b"shared", "a": b"2"}))
    store.once(key(n=3), writer({"m": b"other"}))
    flip(one.path_of("m"), restore_times=False)
    assert store.get(key(n=1)) is None
    assert [entry.key for entry in store.entries()] == [key(n=3)]


def test_a_damaged_orphan_is_not_reused_by_the_next_put(store, key, writer, root) -> None:
    artifact = store.once(key(), writer({"m": b"precious"})).artifact
    flip(artifact.path("model"), restore_times=True)
    again = store.put({"m": _file(root.parent / "m", b"precious")}, key=key(n=2), roles={"m": "model"})
    assert again.path("model").read_bytes() == b"precious"
    assert store.get(key()) is not None  # the good copy healed the first entry too


def test_a_large_blob_that_only_looks_changed_is_hashed_once_and_served(store, key, writer, monkeypatch) -> None:
    from modelwright.store import _fs

    path = store.once(key(), writer({"m": os.urandom(LARGE)})).artifact.path("model")
    hashed = []
    real = _fs.hash_file
    monkeypatch.setattr(_fs, "hash_file", lambda p: hashed.append(p) or real(p))
    assert store.get(key()) is not None
    assert hashed == []
    os.utime(path, ns=(1, 1))
    assert store.get(key()) is not None
    assert store.get(key()) is not None
    assert hashed == [path]


def _file(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
