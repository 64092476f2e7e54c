"""The digest of a file anywhere: always that of its bytes, and cheap where nothing was touched."""

import hashlib
import os

import pytest

from modelwright.store import Store, _digests, _fs, _stamp, file_digest, stage_key


@pytest.fixture
def hashed(monkeypatch):
    """Which files were read; each test begins like a new process."""
    read, real = [], _fs.hash_file
    monkeypatch.setattr(_fs, "hash_file", lambda path: read.append(path.name) or real(path))
    monkeypatch.setattr(_digests, "_seen", {})
    monkeypatch.setattr(_digests, "_SETTLED_NS", 0)
    return read


@pytest.fixture
def large(tmp_path):
    path = tmp_path / "weights"
    path.write_bytes(os.urandom(_digests.SMALL + 1))
    os.utime(path, ns=(1, 1))
    return path


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_large_file_is_read_once_also_by_the_next_process(large, hashed):
    assert file_digest(large) == file_digest(large) == sha256(large)
    _digests._seen.clear()
    assert file_digest(large) == sha256(large)
    assert hashed == ["weights"]


def test_a_changed_byte_is_seen_though_size_and_time_are_as_before(large, hashed):
    file_digest(large)
    with large.open("r+b") as file:
        file.write(b"x")
    os.utime(large, ns=(1, 1))
    assert file_digest(large) == sha256(large)


def test_another_file_moved_into_its_place_is_seen(large, hashed, tmp_path):
    file_digest(large)
    other = tmp_path / "other"
    other.write_bytes(os.urandom(_digests.SMALL + 1))
    os.utime(other, ns=(1, 1))
    other.replace(large)
    assert file_digest(large) == sha256(large)


def test_a_fresh_file_is_not_remembered(large, hashed, monkeypatch):
    monkeypatch.setattr(_digests, "_SETTLED_NS", 2 * 10**9)
    for _ in range(2):
        file_digest(large)
    assert hashed == ["weights", "weights"]


@pytest.mark.parametrize(
    "kept",
    [lambda path, info: None, lambda path, info: info.st_mtime_ns, lambda path, info: 0],
    ids=["nothing", "last write", "creation"],
)
def test_without_a_change_time_it_is_always_read(large, hashed, monkeypatch, kept):
    monkeypatch.setattr(_stamp, "change_time", kept)
    os.utime(large, (5, 5))
    for _ in range(2):
        file_digest(large)
    assert hashed == ["weights", "weights"]


@pytest.mark.parametrize("note", [b"", b"{", b"\xff", b"1:2:3:4 abc"])
def test_a_damaged_note_costs_only_time(large, hashed, note):
    file_digest(large)
    _digests._seen.clear()
    _digests._note(str(large)).write_bytes(note)
    assert file_digest(large) == sha256(large)


def test_what_is_remembered_stays_small(large, hashed, monkeypatch, tmp_path):
    monkeypatch.setattr(_digests, "_MOST", 4)
    for number in range(12):
        name = tmp_path / f"link-{number}"
        name.hardlink_to(large)
        file_digest(name)
    assert len(list((tmp_path / "home" / "digests").iterdir())) <= 4


def test_a_home_that_cannot_be_written_only_costs_time(large, hashed, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_HOME", "/proc/nowhere")
    assert file_digest(large) == sha256(large)


def kept(store, path):
    key = stage_key(stage="x", version="1", libraries={}, inputs={}, params=path.name)
    (file,) = store.put({"weights": path}, key=key, roles={"weights": "model"}).files
    return file.digest


def test_what_was_hashed_to_name_it_is_not_hashed_again_to_keep_it(large, hashed, tmp_path):
    with Store(tmp_path / "store") as store:
        assert file_digest(large) == kept(store, large)
    assert hashed == ["weights"]


def test_a_file_that_changes_while_it_is_copied_is_kept_under_the_name_of_the_copy(
    large, hashed, tmp_path, monkeypatch
):
    before, real = file_digest(large), _fs.copy

    def changed_first(source, target):
        source.write_bytes(b"other" + source.read_bytes()[5:])
        real(source, target)

    monkeypatch.setattr(_fs, "copy", changed_first)
    with Store(tmp_path / "store") as store:
        assert kept(store, large) == sha256(large) != before
