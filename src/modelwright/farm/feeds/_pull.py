"""One artifact back from a feed: every file checked by its digest, and written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from modelwright._dataclass import dataclass
from modelwright._json import loads
from modelwright.errors import InputError, UsageError
from modelwright.farm.feeds._bytes import ByteCount
from modelwright.farm.feeds._errors import FeedError, corrupt
from modelwright.farm.feeds._feed import Feed
from modelwright.farm.feeds._package import Package, Shipment
from modelwright.models import MANIFEST, FileDigest, digests_of, read_build
from modelwright.store import Produced, Store, stage_key
from modelwright.targets import parse_target
from modelwright.vocabulary import OnProgress, Result, silent

_STAGE_VERSION = "1"


@dataclass(frozen=True)
class PullResult(Result):
    """A package as a folder. `bytes_received` is 0 when the store had it."""

    kind: ClassVar[str] = "pull"

    feed: str
    package: Package
    reference: str
    digest: str
    folder: Path
    files: tuple[FileDigest, ...]
    bytes_received: int


@dataclass(frozen=True)
class PackageQuery:
    """What is to be pulled. A precision that is not said must be the only one; of versions it is the newest."""

    model: str
    target: str
    precision: str | None = None
    version: str | None = None

    def fits(self, package: Package) -> bool:
        asked = (self.target, self.precision or package.precision, self.version or package.version)
        return asked == (package.target, package.precision, package.version)


def pull(
    feed: Feed,
    wanted: PackageQuery,
    output: Path,
    *,
    store: Store,
    overwrite: bool = False,
    on_progress: OnProgress = silent,
) -> PullResult:
    """Get one package and write it as a build folder. What the store has by its digest is not fetched."""
    store.check_destination(output, (MANIFEST,), overwrite=overwrite)
    shipment = _found(feed, wanted)
    count = ByteCount("fetching", shipment, on_progress)

    def produce(workdir: Path) -> Produced:
        feed.fetch(shipment, workdir, count)
        _check(feed, shipment, workdir)
        return Produced(roles={file.name: "file" for file in shipment.files})

    inputs = {file.name: file.sha256 for file in shipment.files}
    key = stage_key(stage="pull", version=_STAGE_VERSION, libraries={}, inputs=inputs, params={})
    artifact = store.once(key, produce, label=f"{wanted.model} for {wanted.target}, pulled").artifact
    store.materialize(artifact, output, overwrite=overwrite)
    reference, digest = feed.reference(shipment), f"sha256:{shipment.digest}"
    return PullResult(feed.address, shipment.package, reference, digest, output, shipment.files, count.moved)


def _found(feed: Feed, wanted: PackageQuery) -> Shipment:
    wanted = PackageQuery(wanted.model, str(parse_target(wanted.target)), wanted.precision, wanted.version)
    fitting = [offer for offer in feed.offers(wanted.model) if wanted.fits(offer.package)]
    if not fitting:
        raise _absent(feed, wanted)
    precisions = sorted({offer.package.precision for offer in fitting})
    if len(precisions) > 1:
        raise UsageError(
            f"{wanted.model} is there for {wanted.target} more than once",
            cause=f"in the precisions {', '.join(precisions)}",
            fix="give one of them as `precision`",
        )
    newest = max(fitting, key=lambda offer: offer.since).package
    shipment = feed.find(newest)
    if shipment is None:
        raise corrupt(f"{feed.address} does not have {newest}", "it lists the package, and has none of that name")
    if shipment.package != newest:
        raise corrupt(f"{feed.address} gave another package than {newest}", f"it gave {shipment.package}")
    return shipment


def _absent(feed: Feed, wanted: PackageQuery) -> FeedError:
    others = sorted({str(offer.package) for offer in feed.offers(wanted.model)})
    asked = Package(wanted.model, wanted.target, wanted.precision or "any precision", wanted.version)
    return FeedError(
        f"{feed.address} has no {asked}",
        kind="refused",
        cause=f"of this model it has {'; '.join(others)}" if others else f"it has nothing of {wanted.model}",
        fix="ask for what is there, or publish it first",
    )


def _check(feed: Feed, shipment: Shipment, folder: Path) -> None:
    """Nothing of what a feed gives is believed: not the bytes, and not that they are what the name says."""
    for file in shipment.files:
        path = folder / file.name
        if not path.is_file() or digests_of(folder, [file.name]) != (file,):
            what = "other bytes than were published" if path.is_file() else "nothing"
            raise corrupt(f"{feed.address} gave a damaged {shipment.package}", f"for {file.name} it gave {what}")
    try:
        read_build(folder)
    except InputError as error:
        raise corrupt(f"{feed.address} gave a damaged {shipment.package}", error.cause) from error
    document = loads((folder / MANIFEST).read_bytes())
    built = document.get("target", shipment.package.target), document.get("precision", shipment.package.precision)
    if built != (shipment.package.target, shipment.package.precision):
        raise corrupt(f"{feed.address} gave another build than {shipment.package}", f"it is for {' in '.join(built)}")
