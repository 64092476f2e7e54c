"""A folder keeps what every feed keeps, and a little more."""

import pytest

import modelwright as mw
from modelwright.errors import UsageError
from modelwright.farm.feeds import FeedError, PackageQuery, open_feed, publish, pull
from modelwright.farm.feeds._open import locate
from modelwright.store import Store
from modelwright.testing import FeedSuite
from modelwright.testing._feed import content, write_build


class TestFolderFeed(FeedSuite):
    @pytest.fixture
    def feed(self, tmp_path):
        feed = open_feed(tmp_path / "the feed")
        feed.preflight()
        return feed


def test_a_feed_among_what_wright_keeps_for_itself_is_refused(tmp_path):
    build = write_build(tmp_path / "build")
    (tmp_path / "link").symlink_to(tmp_path / "home")
    for place in (tmp_path / "home", tmp_path / "home" / "store" / "feed", tmp_path / "link" / "feed"):
        with pytest.raises(UsageError, match="no place for a feed"):
            mw.publish(build, place)
    assert not (tmp_path / "home" / "store" / "feed").exists()


def test_a_feed_in_the_build_itself_is_refused_and_the_build_stays_as_it_is(tmp_path):
    build = write_build(tmp_path / "build")
    before = content(build)
    for place in (build, build / "feed"):
        with pytest.raises(UsageError, match="is in the build"):
            mw.publish(build, place)
    assert content(build) == before
    assert not (build / "feed").exists()


def test_what_cannot_be_located_is_told_with_where_it_was_looked_for(tmp_path):
    with pytest.raises(UsageError) as nothing:
        locate(str(tmp_path / "missing" / "model"))
    assert nothing.value.cause == f"{tmp_path} has no model missing/model"
    with pytest.raises(UsageError) as nowhere:
        locate("missing/model")
    assert nowhere.value.cause == "no beginning of it is a folder"


@pytest.mark.parametrize("harm", ["gone", "dangling", "elsewhere"])
def test_a_file_that_the_feed_has_lost_is_corrupt_and_nothing_is_written(tmp_path, harm):
    feed = open_feed(tmp_path / "feed")
    feed.preflight()
    publish(feed, write_build(tmp_path / "build"))
    blob = max((tmp_path / "feed" / "blobs").rglob("*"), key=lambda path: path.is_file() and path.stat().st_size)
    blob.unlink()
    (tmp_path / "other").write_bytes(b"something else")
    if harm != "gone":
        blob.symlink_to(tmp_path / ("other" if harm == "elsewhere" else "nothing"))
    with Store(tmp_path / "store") as store, pytest.raises(FeedError) as caught:
        pull(feed, PackageQuery("org/model", "cpu"), tmp_path / "back", store=store)
    assert (caught.value.kind, caught.value.exit_code) == ("corrupt", 5)
    assert not (tmp_path / "back").exists()
