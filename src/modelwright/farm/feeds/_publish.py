"""A build folder goes to a feed: once, whole, and counted as there only when the feed confirms every digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from modelwright._dataclass import dataclass
from modelwright._json import digest, loads
from modelwright.errors import InputError, UsageError, WrightError
from modelwright.farm.feeds._bytes import ByteCount
from modelwright.farm.feeds._errors import FeedError, corrupt
from modelwright.farm.feeds._feed import Feed
from modelwright.farm.feeds._package import LICENCE, Package, Shipment
from modelwright.graph import facts
from modelwright.models import MANIFEST, BuildFolder, FileDigest, digests_of, read_build
from modelwright.targets import parse_target
from modelwright.vocabulary import OnProgress, Progress, Result, silent

_SHORT = 12
_TITLE = "org.opencontainers.image.title"
_PASSED = {True: "yes", False: "no", None: "unproven"}


@dataclass(frozen=True)
class PublishResult(Result):
    """A package that is in a feed. `confirmed` are the local files whose very digest the feed holds.

    `already` says that nothing had to be sent; `recovered` that sending failed, and the feed has it all the same.
    """

    kind: ClassVar[str] = "publish"

    feed: str
    package: Package
    reference: str
    digest: str
    files: tuple[FileDigest, ...]
    confirmed: tuple[FileDigest, ...]
    bytes_sent: int
    bytes_there: int
    already: bool = False
    recovered: bool = False


def publish(
    feed: Feed,
    folder: Path,
    package: Package | None = None,
    *,
    licence: str | None = None,
    on_progress: OnProgress = silent,
) -> PublishResult:
    """Publish a build folder. `package` is what it is called; without one, what its manifest says."""
    require_apart(feed, folder)
    local = pack(folder, package, licence)
    count = ByteCount("sending", local, on_progress)
    there = _same(feed, local)
    already = there is not None and not _unconfirmed(feed, there)
    recovered = not already and not _sent(feed, local, folder, count)
    if not already:
        on_progress(Progress(f"asking {feed.address} for the digests", label=local.package.target))
        there = _same(feed, local)
    if there is None:
        raise corrupt(f"{feed.address} lost {local.package}", "it took the package, and says that it has none")
    missing = () if already else _unconfirmed(feed, there)
    if missing:
        raise corrupt(f"{feed.address} does not confirm {local.package}", f"it has other content: {', '.join(missing)}")
    return PublishResult(
        feed.address,
        there.package,
        feed.reference(there),
        f"sha256:{there.digest}",
        local.files,
        confirmed=tuple(file for file in local.files if file in there.files),
        bytes_sent=count.moved,
        bytes_there=count.untouched,
        already=already,
        recovered=recovered,
    )


def require_apart(feed: Feed, folder: Path) -> None:
    """A build folder holds what was built, and nothing else: no feed either."""
    place, build = feed.folder and feed.folder.resolve(), folder.resolve()
    if place is not None and (place == build or build in place.parents):
        raise UsageError(
            f"{feed.address} is in the build that is to be published",
            cause="a build folder holds what was built, and nothing else",
            fix="give another folder",
        )


def pack(folder: Path, package: Package | None = None, licence: str | None = None) -> Shipment:
    """A build folder as it would be published, if every file of it still is what was built."""
    build = read_build(folder)
    manifest = digests_of(folder, [MANIFEST])
    document = loads((folder / MANIFEST).read_bytes())
    named, content = _named(folder, document, package), _content(document)
    if named.version is None:
        named = replace(named, version=content[:_SHORT])
    built = {file.name: file for part in build.parts for file in part.files} | {f.name: f for f in build.companions}
    return Shipment(named, content, (*manifest, *built.values()), _notes(build, named, document, licence))


def _named(folder: Path, document: Mapping[str, Any], package: Package | None) -> Package:
    """What it is called; for what it was built, and in which precision, nobody can say otherwise."""
    try:
        own = Package(str(document["source"]["name"]), str(document["target"]), str(document["precision"]))
    except (KeyError, TypeError) as error:
        cause = f"its manifest has no {error}"
        raise InputError(f"{folder} does not say what it is", cause=cause, fix="build it again") from error
    if package is None:
        return own
    said = replace(package, target=str(parse_target(package.target)))
    if (said.target, said.precision) != (own.target, own.precision):
        raise UsageError(
            f"{folder} is not {said.target} in {said.precision}",
            cause=f"it was built for {own.target} in {own.precision}",
            fix="publish it as what it is",
        )
    return said


def _content(document: Mapping[str, Any]) -> str:
    """The digest of what was built, for what, and what was found out about it; not of when, where and how fast."""
    said = {name: document.get(name) for name in ("source", "target", "precision", "passed", "recipe", "links")}
    parts = [
        {name: part.get(name) for name in ("name", "folder", "files", "inputs")} for part in document["components"]
    ]
    accuracy = _without_times(document.get("accuracy"))
    return digest({**said, "components": parts, "companions": document.get("companions"), "accuracy": accuracy})


def _without_times(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_times(item) for key, item in value.items() if not key.endswith("seconds")}
    return [_without_times(item) for item in value] if isinstance(value, list) else value


def _notes(build: BuildFolder, package: Package, document: Mapping[str, Any], licence: str | None) -> dict[str, str]:
    """Annotations. What is not known is not there."""
    target = parse_target(package.target)
    source = document.get("source") or {}
    known = {
        _TITLE: package.model,
        LICENCE: licence,
        "org.modelwright.ep": target.ep,
        "org.modelwright.device": target.device,
        "org.modelwright.opset": _opsets(build),
        "org.modelwright.source": source.get("identity"),
        "org.modelwright.task": source.get("task"),
        "org.modelwright.passed": _PASSED[document.get("passed")],
    }
    return {name: str(value) for name, value in known.items() if value is not None}


def _opsets(build: BuildFolder) -> str | None:
    """Of ONNX's own operators, of every part."""
    try:
        found = {
            opset.version
            for part in build.parts
            for opset in facts(build.path / part.model).opsets
            if _own(opset.domain)
        }
    except WrightError:
        return None
    return ",".join(map(str, sorted(found))) or None


def _own(domain: str) -> bool:
    return domain in ("", "ai.onnx")


def _sent(feed: Feed, local: Shipment, folder: Path, count: ByteCount) -> bool:
    """Whether sending went well. If not, and the feed has it all the same, that is as good: a feed may commit, and then
    fail to say so."""
    try:
        feed.send(local, folder, count)
    except FeedError as error:
        if error.kind not in ("unavailable", "conflict"):
            raise
        if not _there_after_all(feed, local, error):
            raise
        return False
    return True


def _there_after_all(feed: Feed, local: Shipment, error: FeedError) -> bool:
    try:
        there = _same(feed, local)
        missing = () if there is None else _unconfirmed(feed, there)
    except FeedError as asked:
        raise (asked if asked.kind == "conflict" else error) from error
    if missing and error.kind == "conflict":  # the name is taken for good, by what is damaged
        raise corrupt(f"{feed.address} does not confirm {local.package}", f"it has other content: {', '.join(missing)}")
    return there is not None and not missing


def _same(feed: Feed, local: Shipment) -> Shipment | None:
    """What the feed has under this name; refused if that is something else."""
    there = feed.find(local.package)
    if there is not None and not there.same_as(local):
        raise FeedError(
            f"{feed.address} has other content as {local.package}",
            kind="conflict",
            cause=f"it has {there.content[:_SHORT]}, this is {local.content[:_SHORT]}, and a version stays what it is",
            fix="give it another `version`, or leave that out",
        )
    return there


def _unconfirmed(feed: Feed, there: Shipment) -> tuple[str, ...]:
    held = set(feed.confirm(there))
    return tuple(file.name for file in there.files if file not in held)
