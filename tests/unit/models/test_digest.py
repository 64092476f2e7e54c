"""A digest says what the bytes are; a name says nothing."""

import hashlib
import json

import pytest

from modelwright.errors import InputError
from modelwright.models import HfSource, fetch, resolve
from modelwright.models import _hub as hub

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
    good = resolve(str(cached())).identity()
    evil = resolve(str(cached(EVIL))).identity()
    assert good != evil


def test_a_folder_cannot_pass_for_another_by_the_name_of_a_blob_of_its_own(tmp_path):
    identities = []
    for name, weights in (("good", GOOD), ("evil", EVIL)):
        (tmp_path / name / "blobs").mkdir(parents=True)
        (tmp_path / name / "config.json").write_bytes(CONFIG)
        (tmp_path / name / "blobs" / sha(GOOD)).write_bytes(weights)
        (tmp_path / name / "model.safetensors").symlink_to(f"blobs/{sha(GOOD)}")
        identities.append(resolve(str(tmp_path / name)).identity())
    assert identities[0] != identities[1]


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
    assert fetched(monkeypatch, snapshot).identity() == resolve(str(snapshot)).identity()
