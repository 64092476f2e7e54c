"""A folder that is whole or not there, and never a mix of two contents."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from pathlib import Path

import pytest

from modelwright.errors import StoreError, UsageError
from modelwright.store import _fs

MARKER = ".wright-artifact.json"
both = pytest.mark.parametrize("link", [False, True], ids=["copy", "link"])
overwrites = pytest.mark.parametrize("overwrite", [False, True], ids=["plain", "overwrite"])


def tree(folder: Path) -> dict[str, bytes]:
    found = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert found.pop(MARKER)
    return found


@both
def test_the_folder_holds_exactly_the_files(store, key, writer, tmp_path, link) -> None:
    files = {"m.onnx": b"graph", "w/m.data": b"weights", "empty": b"", "same": b"graph"}
    artifact = store.once(key(), writer(files)).artifact
    assert tree(store.materialize(artifact, tmp_path / "deep" / "out", link=link)) == files


def test_copies_are_writable_and_writing_them_leaves_the_store_whole(store, key, writer, tmp_path) -> None:
    artifact = store.once(key(), writer({"m": b"stored"})).artifact
    out = store.materialize(artifact, tmp_path / "out")
    assert stat.S_IMODE((out / "m").stat().st_mode) == 0o644
    (out / "m").write_bytes(b"edited")
    assert store.verify().clean
    assert tree(store.materialize(artifact, tmp_path / "again")) == {"m": b"stored"}


def test_links_share_the_content_and_keep_large_hits_cheap(store, key, writer, tmp_path, monkeypatch) -> None:
    artifact = store.once(key(), writer({"m": os.urandom(9 << 20), "same.data": b"s"})).artifact
    hashed = []
    real = _fs.hash_file
    monkeypatch.setattr(_fs, "hash_file", lambda p: hashed.append(p.stat().st_size) or real(p))
    for number in range(3):
        out = store.materialize(store.get(key()), tmp_path / f"out {number}", link=True)
    assert (out / "m").stat().st_ino == artifact.path("model").stat().st_ino
    assert max(hashed) < 1000  # only the small files are ever hashed again


def test_a_folder_that_is_right_already_is_left_alone_and_its_large_files_are_not_read(
    store, key, writer, tmp_path, monkeypatch
) -> None:
    artifact = store.once(key(), writer({"m": os.urandom(9 << 20), "note": b"n"})).artifact
    out = store.materialize(artifact, tmp_path / "out")
    before = {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in out.iterdir()}
    hashed, real = [], _fs.hash_file
    monkeypatch.setattr(_fs, "hash_file", lambda p: hashed.append(p.name) or real(p))
    store.materialize(artifact, out)
    assert {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in out.iterdir()} == before
    assert "m" not in hashed


def test_a_file_that_was_edited_right_after_it_was_delivered_is_seen(store, key, writer, tmp_path) -> None:
    artifact = store.once(key(), writer({"m": os.urandom(9 << 20)})).artifact
    out = store.materialize(artifact, tmp_path / "out")
    times = (out / "m").stat().st_mtime_ns
    with (out / "m").open("r+b") as file:
        file.write(b"mine")
    with pytest.raises(UsageError, match="Will not replace"):
        store.materialize(artifact, out)
    os.utime(out / "m", ns=(times, times))  # sets the change time, too
    with pytest.raises(UsageError, match="Will not replace"):
        store.materialize(artifact, out)


def test_a_folder_of_links_becomes_one_of_files_that_may_be_edited(store, key, writer, tmp_path) -> None:
    artifact = store.once(key(), writer({"m": b"1"})).artifact
    store.materialize(artifact, tmp_path / "out", link=True)
    out = store.materialize(artifact, tmp_path / "out")
    (out / "m").write_bytes(b"edited")
    assert store.verify().clean


def test_a_missing_file_is_delivered_again(store, key, writer, tmp_path) -> None:
    artifact = store.once(key(), writer({"m": b"1", "w": b"2"})).artifact
    out = store.materialize(artifact, tmp_path / "out")
    (out / "w").unlink()
    assert tree(store.materialize(artifact, out)) == {"m": b"1", "w": b"2"}


@both
def test_no_file_of_an_earlier_content_survives(store, key, writer, tmp_path, link) -> None:
    first = store.once(key(n=1), writer({"m.onnx": b"1", "m.onnx.data": b"old weights", "sub/x": b"x"})).artifact
    second = store.once(key(n=2), writer({"m.onnx": b"2"})).artifact
    store.materialize(first, tmp_path / "out", link=link)
    assert tree(store.materialize(second, tmp_path / "out", link=link)) == {"m.onnx": b"2"}
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".wright")] == []


def test_a_folder_it_did_not_make_is_refused_and_written_beside_when_told(store, key, writer, tmp_path) -> None:
    artifact = store.once(key(), writer({"m": b"1"})).artifact
    out = tmp_path / "photos"
    out.mkdir()
    (out / "holiday.jpg").write_bytes(b"dear")
    with pytest.raises(UsageError) as caught:
        store.materialize(artifact, out)
    assert "holiday.jpg" in caught.value.cause
    assert tree(store.materialize(artifact, out, overwrite=True)) == {"m": b"1", "holiday.jpg": b"dear"}


@overwrites
@pytest.mark.parametrize("harm", [lambda out: (out / "m").write_bytes(b"mine"), lambda out: relink(out / "m")])
def test_a_file_of_ours_that_was_edited_is_the_users(store, key, writer, tmp_path, overwrite, harm) -> None:
    first = store.once(key(n=1), writer({"m": b"1", "n": b"1"})).artifact
    second = store.once(key(n=2), writer({"m": b"2"})).artifact
    out = store.materialize(first, tmp_path / "out")
    harm(out)
    before = tree(out)
    with pytest.raises(UsageError, match="Will not replace") as caught:
        store.materialize(second, out, overwrite=overwrite)
    assert caught.value.cause == "m in it was changed since modelwright wrote it"
    assert tree(out) == before


def relink(path: Path) -> None:
    path.unlink()
    (path.parent.parent / "elsewhere").write_bytes(b"1")
    path.symlink_to(path.parent.parent / "elsewhere")


@overwrites
@pytest.mark.parametrize(
    "marker",
    ['{"files": ["thesis.txt", "m"]}', '{"files": [{"name": "thesis.txt", "digest": "DIGEST"}]}', "[", ""],
)
def test_a_note_written_by_hand_proves_nothing(store, key, writer, tmp_path, overwrite, marker) -> None:
    artifact = store.once(key(), writer({"m": b"1"})).artifact
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_bytes(b"work")
    (out / MARKER).write_text(marker.replace("DIGEST", hashlib.sha256(b"work").hexdigest()))
    with pytest.raises(UsageError):
        store.materialize(artifact, out, overwrite=overwrite)
    assert (out / "thesis.txt").read_bytes() == b"work"


@overwrites
@pytest.mark.parametrize("theirs", ["m", "sub", "sub/x/deep.txt", "other/sub", ".git/HEAD"])
def test_what_stands_in_the_way_is_never_removed(store, key, writer, tmp_path, overwrite, theirs) -> None:
    artifact = store.once(key(), writer({"m": b"1", "sub/x": b"1"})).artifact
    path = tmp_path / "out" / theirs
    path.parent.mkdir(parents=True)
    path.write_bytes(b"dear")
    blocks = theirs in ("m", "sub", "sub/x/deep.txt") or not overwrite
    with pytest.raises(UsageError) if blocks else contextlib.nullcontext():
        store.materialize(artifact, tmp_path / "out", overwrite=overwrite)
    assert path.read_bytes() == b"dear"
    assert (tmp_path / "out" / MARKER).exists() is not blocks


def test_written_beside_others_only_our_old_files_go(store, key, writer, tmp_path) -> None:
    first = store.once(key(n=1), writer({"m": b"1", "m.data": b"old", "sub/x": b"x"})).artifact
    second = store.once(key(n=2), writer({"m": b"2"})).artifact
    out = store.materialize(first, tmp_path / "out")
    (out / "notes.txt").write_text("mine")
    (out / "sub" / "theirs").write_text("mine too")
    assert tree(store.materialize(second, out, overwrite=True)) == {
        "m": b"2",
        "notes.txt": b"mine",
        "sub/theirs": b"mine too",
    }
    (out / "notes.txt").unlink()
    (out / "sub" / "theirs").unlink()
    (out / "sub").rmdir()
    assert tree(store.materialize(first, out)) == {"m": b"1", "m.data": b"old", "sub/x": b"x"}


def test_the_folder_one_stands_in_is_filled_and_stays_itself(store, key, writer, tmp_path, monkeypatch) -> None:
    artifact = store.once(key(), writer({"m": b"1"})).artifact
    out = tmp_path / "here"
    out.mkdir()
    inode = out.stat().st_ino
    monkeypatch.chdir(out)
    for _ in range(2):
        assert tree(store.materialize(artifact, Path())) == {"m": b"1"}
    assert out.stat().st_ino == inode


def test_a_file_the_user_added_to_our_folder_is_not_lost(store, key, writer, tmp_path) -> None:
    artifact = store.once(key(), writer({"m": b"1"})).artifact
    out = store.materialize(artifact, tmp_path / "out")
    (out / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="Will not replace"):
        store.materialize(artifact, out)
    assert (out / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["m", "new.txt"])
@pytest.mark.parametrize("beside", [False, True], ids=["swapped", "in place"])
def test_an_edit_while_we_copy_is_not_lost(store, key, writer, tmp_path, monkeypatch, name, beside) -> None:
    first = store.once(key(n=1), writer({"m": b"1"})).artifact
    second = store.once(key(n=2), writer({"m": b"2"})).artifact
    out = store.materialize(first, tmp_path / "out")
    if beside:
        (out / "theirs").write_bytes(b"dear")

    def hook(step: str) -> None:
        if step == "clone to m":
            (out / name).write_bytes(b"just now")

    monkeypatch.setattr(_fs, "hook", hook)
    with pytest.raises(UsageError, match="Will not replace"):
        store.materialize(second, out, overwrite=beside)
    assert (out / name).read_bytes() == b"just now"


def test_an_empty_folder_is_filled_and_a_file_is_refused(store, key, writer, tmp_path) -> None:
    artifact = store.once(key(), writer({"m": b"1"})).artifact
    (tmp_path / "empty").mkdir()
    assert tree(store.materialize(artifact, tmp_path / "empty")) == {"m": b"1"}
    (tmp_path / "file").write_bytes(b"f")
    with pytest.raises(UsageError):
        store.materialize(artifact, tmp_path / "file", overwrite=True)
    assert (tmp_path / "file").read_bytes() == b"f"


def test_a_link_is_refused_or_followed_and_what_it_points_to_survives(store, key, writer, tmp_path) -> None:
    artifact = store.once(key(), writer({"m": b"1"})).artifact
    (tmp_path / "real").mkdir(mode=0o750)
    (tmp_path / "real" / "f").write_bytes(b"f")
    (tmp_path / "out").symlink_to(tmp_path / "real")
    with pytest.raises(UsageError, match="Will not replace"):
        store.materialize(artifact, tmp_path / "out")
    assert tree(store.materialize(artifact, tmp_path / "out", overwrite=True)) == {"m": b"1", "f": b"f"}
    assert (tmp_path / "out").is_symlink()
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o750


def test_the_root_of_the_disk_is_refused(store, key, writer) -> None:
    artifact = store.once(key(), writer({"m": b"1"})).artifact
    with pytest.raises(UsageError, match="Will not replace"):
        store.materialize(artifact, Path("/"), overwrite=True)


@pytest.mark.parametrize("place", [".", "blobs", "blobs/new", ".."])
def test_the_store_itself_is_never_a_destination(store, key, writer, root, place) -> None:
    artifact = store.once(key(), writer({"m": b"1"})).artifact
    with pytest.raises(UsageError, match="Will not replace"):
        store.materialize(artifact, root / place, overwrite=True)
    assert store.verify().clean


def test_the_mode_of_the_folder_around_it_is_untouched(store, key, writer, tmp_path) -> None:
    artifact = store.once(key(), writer({"m": b"1"})).artifact
    (tmp_path / "around").mkdir(mode=0o755)
    for _ in range(2):
        store.materialize(artifact, tmp_path / "around" / "out")
    assert stat.S_IMODE((tmp_path / "around").stat().st_mode) == 0o755


def test_a_materialised_folder_can_be_put_back_without_our_note(store, key, writer, tmp_path) -> None:
    artifact = store.once(key(), writer({"m": b"1"})).artifact
    out = store.materialize(artifact, tmp_path / "out")
    assert store.put(out, key=key(n=2), roles={"m": "model"}).digest == artifact.digest


@both
def test_another_disk_works(store, key, writer, small_disk, link) -> None:
    files = {"m": b"1" * 1000, "sub/w.data": b"2" * 1000}
    artifact = store.once(key(), writer(files)).artifact
    assert tree(store.materialize(artifact, small_disk / "out", link=link)) == files


def test_a_full_destination_says_so_and_keeps_the_old_folder(store, key, writer, small_disk) -> None:
    old = store.once(key(n=1), writer({"m": b"old"})).artifact
    big = store.once(key(n=2), writer({"m": os.urandom(8 << 20)})).artifact
    out = store.materialize(old, small_disk / "out")
    with pytest.raises(StoreError) as caught:
        store.materialize(big, out)
    assert "full" in caught.value.problem
    assert str(small_disk) in caught.value.cause
    assert tree(out) == {"m": b"old"}
    assert [path.name for path in small_disk.iterdir()] == ["out"]


def test_a_swap_that_fails_puts_the_old_folder_back(store, key, writer, tmp_path, monkeypatch) -> None:
    first = store.once(key(n=1), writer({"m": b"1"})).artifact
    second = store.once(key(n=2), writer({"m": b"2"})).artifact
    out = store.materialize(first, tmp_path / "out")

    def hook(step: str) -> None:
        if step == "rename to out":
            raise OSError(errno.EIO, "injected")

    monkeypatch.setattr(_fs, "hook", hook)
    with pytest.raises(StoreError):
        store.materialize(second, out)
    monkeypatch.setattr(_fs, "hook", None)
    assert tree(out) == {"m": b"1"}


def test_an_artifact_that_was_collected_is_a_clear_error(store, key, writer, tmp_path) -> None:
    artifact = store.once(key(), writer({"m": b"1"})).artifact
    store.gc(0, grace_s=0)
    with pytest.raises(StoreError) as caught:
        store.materialize(artifact, tmp_path / "out")
    assert "again" in caught.value.fix
