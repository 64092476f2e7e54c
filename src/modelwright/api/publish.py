"""`modelwright.publish`, `modelwright.pull` and `modelwright.verify`."""

from __future__ import annotations

from pathlib import Path

from modelwright import models
from modelwright.api._opened import opened
from modelwright.errors import UsageError
from modelwright.farm import feeds
from modelwright.farm.feeds import Feed, Package, PackageQuery, PublishResult, PullResult
from modelwright.models import BuildCheck
from modelwright.store import Store
from modelwright.vocabulary import OnProgress, silent


def publish(
    build: str | Path,
    to: str | Path | Feed,
    *,
    model: str | None = None,
    version: str | None = None,
    licence: str | None = None,
    on_progress: OnProgress | None = None,
) -> PublishResult:
    """Publish a build folder to the feed `to`; the same content is sent once. `model` is what it is called there.

    Without `version` it gets one that stands for its content. It counts as published when the feed has confirmed the
    digest of every file.
    """
    folder, feed = Path(build), feeds.open_feed(to)
    feeds.require_apart(feed, folder)
    local = feeds.pack(folder, licence=licence)
    feed.preflight()
    own = local.package
    package = Package(model or own.model, own.target, own.precision, version)
    return feeds.publish(feed, folder, package, licence=licence, on_progress=on_progress or silent)


def pull(
    feed: str | Path | Feed,
    model: str | None = None,
    *,
    target: str,
    output: str | Path,
    precision: str | None = None,
    version: str | None = None,
    overwrite: bool = False,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> PullResult:
    """Get one artifact from a feed, check every file by its digest, and write it as a build folder.

    `model` may be the end of the address: `oci://host/team/org/model`. Of several versions the newest is taken, and of
    several precisions one must be named.
    """
    if model is not None:
        place, name = feeds.open_feed(feed), model
    elif isinstance(feed, Feed):
        raise UsageError("the `model` is missing", cause="a feed holds many", fix="give its name")
    else:
        place, name = feeds.locate(str(feed))
    with opened(store) as kept:
        return feeds.pull(
            place,
            PackageQuery(name, target, precision, version),
            Path(output),
            store=kept,
            overwrite=overwrite,
            on_progress=on_progress or silent,
        )


def verify(folder: str | Path) -> BuildCheck:
    """Everything in a build folder that is not what was built: missing, changed, added."""
    return models.check_build(Path(folder))
