"""Feeds by their address."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from modelwright.errors import UsageError, did_you_mean
from modelwright.farm.feeds._feed import Feed
from modelwright.farm.feeds._folder import FolderFeed

_KINDS = {"oci": "_oci:OciFeed", "oci+http": "_oci:OciFeed"}
_SCHEME = re.compile(r"([a-z][a-z0-9+]+)://(.*)", re.DOTALL)


def open_feed(address: str | Path | Feed) -> Feed:
    """The feed at an address; nothing is asked of it yet. A path is a folder."""
    if isinstance(address, Feed):
        return address
    found = _SCHEME.fullmatch(str(address))
    if found is None or isinstance(address, Path):
        return FolderFeed(Path(address).expanduser())
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
