"""Azure Artifacts as a feed, against a stand-in `az` that keeps state, wants its arguments, and lies."""

import json
import sys
from pathlib import Path

import pytest

import support
from modelwright.farm.feeds import FeedError, PackageQuery, publish, pull
from modelwright.farm.feeds import _azure as azure
from modelwright.farm.feeds._azure import AzureFeed
from modelwright.models import check_build
from modelwright.store import Store
from modelwright.testing import FeedSuite
from modelwright.testing._feed import write_build

STAND_IN = Path(support.__file__).with_name("az.py")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script with a #! line")


@pytest.fixture
def state(tmp_path, monkeypatch):
    state, program = tmp_path / "azure", tmp_path / "bin" / "az"
    state.mkdir()
    program.parent.mkdir()
    # By sh: a #! line of the interpreter itself ends at the first space of its path.
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{STAND_IN}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setenv("AZ_STATE", str(state))
    monkeypatch.delenv("AZURE_DEVOPS_EXT_PAT", raising=False)
    return state


@pytest.fixture
def azure_feed(state):
    return AzureFeed("az", "org/project/feed", patience_s=60)


class TestAzureFeed(FeedSuite):
    @pytest.fixture
    def feed(self, azure_feed):
        return azure_feed

    def check_shared(self, other):
        assert other.bytes_there == 0  # only whole packages go there


@pytest.fixture
def build(tmp_path):
    return write_build(tmp_path / "build")


def lie(state, word, verb, times=1000):
    (state / "lies").write_text(f"{word} {times} {verb}")


def failure(attempt):
    with pytest.raises(FeedError) as caught:
        attempt()
    return caught.value.kind


def test_dead_credentials_are_told_before_and_while_publishing(state, azure_feed, build):
    lie(state, "denied", "*[!w]")  # everything but looking at the extension
    assert failure(azure_feed.preflight) == "auth"
    assert failure(lambda: publish(azure_feed, build)) == "auth"
    assert check_build(build).whole


def test_a_feed_that_is_down_while_the_account_is_good_is_unavailable(state, azure_feed, build):
    lie(state, "broken", "devops invoke")
    assert failure(lambda: publish(azure_feed, build)) == "unavailable"


def test_a_listing_that_cannot_be_read_never_means_that_nothing_is_there(state, azure_feed, build):
    publish(azure_feed, build)
    lie(state, "garbled", "devops invoke")
    assert failure(lambda: publish(azure_feed, build)) == "unavailable"


def test_listings_are_read_to_their_last_page(azure_feed, build, monkeypatch):
    monkeypatch.setattr(azure, "_PAGE", 1)
    for name in ("xx", "x"):
        publish(azure_feed, build, azure.Package(name, "cpu", "fp32"))
    assert len(azure_feed.offers("x")) == 1


@pytest.mark.parametrize("word", ["hang", "lost"])
def test_what_was_committed_before_the_answer_was_lost_is_found_and_counted(state, build, word):
    feed = AzureFeed("az", "org/project/feed", patience_s=15)
    lie(state, word, "artifacts universal publish", 1)
    sent = publish(feed, build)
    assert sent.recovered
    assert set(sent.confirmed) == set(sent.files)


def test_a_deleted_version_is_this_package_alone(state, azure_feed, build):
    publish(azure_feed, build)
    about = next(state.glob("packages/*/*/about.json"))
    about.write_text(json.dumps({**json.loads(about.read_text()), "isDeleted": True}))
    with pytest.raises(FeedError) as caught:
        publish(azure_feed, build)
    assert (caught.value.kind, caught.value.stops_all) == ("refused", False)
    assert "deleted" in caught.value.cause


def test_a_version_that_others_described_is_known_by_what_is_in_it(state, azure_feed, build):
    publish(azure_feed, build)
    about = next(state.glob("packages/*/*/about.json"))
    about.write_text(
        json.dumps({**json.loads(about.read_text()), "packageDescription": "edited by hand, in four words"})
    )
    assert [offer.package.model for offer in azure_feed.offers("org/model")] == ["org/model"]


def test_wrong_bytes_are_never_confirmed_and_never_written(state, azure_feed, build, tmp_path):
    publish(azure_feed, build)
    (state / "wrong").touch()
    assert failure(lambda: publish(azure_feed, build)) == "corrupt"
    with Store(tmp_path / "store") as store:
        query = PackageQuery("org/model", "cpu")
        assert failure(lambda: pull(azure_feed, query, tmp_path / "back", store=store)) == "corrupt"
    assert not (tmp_path / "back").exists()


def test_without_az_it_says_what_is_missing(build, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert failure(AzureFeed("az", "org/project/feed").preflight) == "unsupported"
