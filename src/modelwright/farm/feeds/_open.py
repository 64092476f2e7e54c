"""Feeds by their address."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from modelwright.errors import UsageError, did_you_mean
from modelwright.farm.feeds._feed import Feed
from modelwright.farm.feeds._folder import FolderFeed
from modelwright.home import home

_KINDS = {
    "oci": "_oci:OciFeed",
    "oci+http": "_oci:OciFeed",
    "hf": "_hub:HubFeed",
    "s3": "_s3:BucketFeed",
    "az": "_azure:AzureFeed",
}
_SCHEME = re.compile(r"([a-z][a-z0-9+]+)://(.*)", re.DOTALL)


def open_feed(address: str | Path | Feed) -> Feed:
    """The feed at an address; nothing is asked of it yet. A path is a folder."""
    if isinstance(address, Feed):
        return address
    found = _SCHEME.fullmatch(str(address))
    if found is None or isinstance(address, Path):
        return _folder(Path(address).expanduser())
    scheme, rest = found.groups()
    if scheme not in _KINDS:
        raise UsageError(
            f"{address} is no address of a feed",
            cause=f"{scheme}:// is none of {', '.join(_KINDS)}",
            fix=did_you_mean(scheme, _KINDS) or "give one of those, or the path of a folder",
        )
    module, _, name = _KINDS[scheme].partition(":")
    made: Feed = getattr(importlib.import_module(f"{__package__}.{module}"), name)(scheme, rest)
    return made


def locate(address: str) -> tuple[Feed, str]:
    """The feed and the model of an address that names both, by asking where that model is: `FEED/org/model`."""
    body, mark, query = address.partition("?")
    words = body.rstrip("/").split("/")
    cuts = range(len(words) - 1, 0, -1)
    found = [
        (feed, model)
        for cut in cuts
        if (feed := _feed_at("/".join(words[:cut]), mark + query)) is not None
        and feed.offers(model := "/".join(words[cut:]))
    ]
    if len(found) == 1:
        return found[0]
    if found:
        cause = " or ".join(f"{model} in {feed.address}" for feed, model in found)
        fix = "give the feed and the `model` apart"
        raise UsageError(f"{address} does not say which model of which feed", cause=cause, fix=fix)
    nearest = next((cut for cut in cuts if _feed_at("/".join(words[:cut]), mark + query)), None)
    if nearest is None:
        cause, fix = "no beginning of it is a folder", "check the path, or give the address of a feed"
    else:
        cause = f"{'/'.join(words[:nearest])} has no model {'/'.join(words[nearest:])}"
        fix = "check the path, or give the feed and the `model` apart"
    raise UsageError(f"nothing is published as {address}", cause=cause, fix=fix)


def _folder(path: Path) -> FolderFeed:
    """Not among what we keep for ourselves, which is pruned."""
    own, place = home().resolve(), path.resolve()
    if place == own or own in place.parents:
        raise UsageError(
            f"{path} is no place for a feed", cause=f"wright keeps its store and its notes in {own}", fix="give another"
        )
    return FolderFeed(path)


def _feed_at(address: str, query: str) -> Feed | None:
    """None where there cannot be one."""
    if not address or address.endswith((":", "/")):
        return None
    if _SCHEME.fullmatch(address) is None:
        return FolderFeed(Path(address).expanduser()) if Path(address).expanduser().is_dir() else None
    try:
        return open_feed(f"{address}{query}")
    except UsageError:
        return None
