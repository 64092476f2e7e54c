"""Feeds: where finished builds are published, and pulled from. See `Feed`; `open_feed` knows them by their address."""

from modelwright.farm.feeds._errors import FeedError, FeedFault
from modelwright.farm.feeds._feed import Feed, Offered
from modelwright.farm.feeds._open import locate, open_feed
from modelwright.farm.feeds._package import Package, Shipment
from modelwright.farm.feeds._publish import PublishResult, pack, publish, require_apart
from modelwright.farm.feeds._pull import PackageQuery, PullResult, pull

__all__ = [
    "Feed",
    "FeedError",
    "FeedFault",
    "Offered",
    "Package",
    "PackageQuery",
    "PublishResult",
    "PullResult",
    "Shipment",
    "locate",
    "open_feed",
    "pack",
    "publish",
    "pull",
    "require_apart",
]
