"""A digest says what the bytes are; a name says nothing."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from modelwright.errors import InputError
from modelwright.sources import HfSource, _digest, _stamps, fetch, file_digest, resolve_source
from modelwright.sources import _hub as hub

CONFIG = json.dumps({"model_type": "bert", "architectures": ["BertForSequenceClassification"]}).encode()
GOOD, EVIL = b"good weights", b"evil weights"


def sha(content):
    return hashlib.sha256(content).hexdigest()


def git_hash(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@pytest.fixture
def cached(tmp_path):
    """The Hub's cache of one model; calling it puts weights under the name of the good ones."""
    cache = tmp_path / "models--some--one"
    snapshot = cache / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (cache / "blobs").mkdir()

    def fill(weights=GOOD, config=CONFIG):
        for name, blob, content in (
            ("config.json", git_hash(CONFIG), config),
            ("model.safetensors", sha(GOOD), weights),
        ):
            (cache / "blobs" / blob).write_bytes(content)
            (snapshot / name).unlink(missing_ok=True)
            (snapshot / name).symlink_to(f"../../blobs/{blob}")
        return snapshot

    return fill


def fetched(monkeypatch, snapshot):
    monkeypatch.setattr(hub, "_snapshot", lambda *_: snapshot)
    source = HfSource("some/one", "text-classification", "bert", None, repo="some/one", commit="abc")
    return fetch(source)


def test_a_link_that_is_named_like_a_hash_does_not_stand_for_its_bytes(cached):
    good = resolve_source(str(cached())).identity()
    evil = resolve_source(str(cached(EVIL))).identity()
    assert good != evil


def test_a_cached_model_is_known_by_its_commit_when_its_blobs_are_what_their_names_say(cached, monkeypatch):
    assert fetched(monkeypatch, cached()).identity() == "hf:some/one@abc"


@pytest.mark.parametrize("damage", [{"weights": EVIL}, {"config": CONFIG + b" "}])
def test_a_cached_blob_with_other_bytes_is_refused(cached, monkeypatch, damage):
    with pytest.raises(InputError, match="not what was downloaded") as error:
        fetched(monkeypatch, cached(**damage))
    assert "blobs" in error.value.fix


def test_a_cache_without_links_is_known_by_its_bytes(cached, monkeypatch):
    snapshot = cached()
    for path in list(snapshot.iterdir()):
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
    assert fetched(monkeypatch, snapshot).identity() == resolve_source(str(snapshot)).identity()


@pytest.fixture
def large(tmp_path, monkeypatch):
    """A file that is worth remembering and has not changed for a while."""
    monkeypatch.setattr(_digest, "_WORTH_REMEMBERING", 1)
    monkeypatch.setattr(_digest, "_SETTLED_NS", 0)
    path = tmp_path / "weights"
    path.write_bytes(GOOD)
    return path


def in_a_new_process():
    _digest._hash.cache_clear()


def test_a_file_is_read_once_and_remembered_by_the_next_process(large, monkeypatch):
    assert file_digest(large) == sha(GOOD)
    in_a_new_process()
    monkeypatch.setattr(_digest.hashlib, "file_digest", lambda *_: pytest.fail("it was read again"))
    assert file_digest(large) == sha(GOOD)


def test_other_bytes_of_the_same_size_and_time_are_noticed(large):
    status = large.stat()
    assert file_digest(large) == sha(GOOD)
    in_a_new_process()
    large.write_bytes(EVIL)
    os.utime(large, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file_digest(large) == sha(EVIL)


@pytest.mark.parametrize("table", ["", "[1]", "{", '{"PATH": 3}', '{"PATH": [1, 2, 3, 4, "x"]}', "[" * 9999])
def test_a_damaged_table_costs_only_time(large, tmp_path, table):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "digests.json").write_text(table.replace("PATH", str(large)))
    assert file_digest(large) == sha(GOOD)


def test_a_home_that_cannot_be_written_costs_only_time(large, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "file" / "home"))
    assert file_digest(large) == sha(GOOD)


def test_the_table_does_not_grow_for_ever(large, tmp_path, monkeypatch):
    monkeypatch.setattr(_stamps, "_MOST", 3)
    for number in range(5):
        path = tmp_path / f"{number}"
        path.write_bytes(GOOD)
        file_digest(path)
    kept = json.loads((tmp_path / "home" / "digests.json").read_text())
    assert [Path(name).name for name in kept] == ["2", "3", "4"]
    assert not list((tmp_path / "home").glob("*.tmp"))
