"""A folder keeps what every feed keeps, and a little more."""

import pytest

from modelwright.farm.feeds import open_feed
from modelwright.testing import FeedSuite


class TestFolderFeed(FeedSuite):
    @pytest.fixture
    def feed(self, tmp_path):
        feed = open_feed(tmp_path / "the feed")
        feed.preflight()
        return feed
