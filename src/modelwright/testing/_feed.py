"""What every feed must keep."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from modelwright._json import dumps
from modelwright._output import SEAL, sealed
from modelwright.errors import UsageError
from modelwright.farm.feeds import Feed, FeedError, Package, PackageQuery, PublishResult, PullResult, publish, pull
from modelwright.models import MANIFEST, MANIFEST_VERSION, check_build
from modelwright.store import Store

WEIGHTS = b"weights that all targets share " * 1000


class FeedSuite:
    """Override the fixture `feed`: one that is empty, and new for every test."""

    @pytest.fixture
    def feed(self) -> Feed:
        raise NotImplementedError("give the feed that is to be tested")

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        with Store(tmp_path / "feed" / "store") as opened:
            yield opened

    def test_it_can_be_written_to(self, feed: Feed) -> None:
        feed.preflight()

    def test_what_was_never_published_is_not_there(self, feed: Feed) -> None:
        assert feed.find(Package("org/none", "cpu", "fp32", "1")) is None
        assert feed.offers("org/none") == ()

    def test_what_was_published_is_confirmed_and_comes_back_as_it_was_built(
        self, feed: Feed, store: Store, tmp_path: Path
    ) -> None:
        made = write_build(tmp_path / "build", companions={"tokenizer/words.json": b"{}"})
        sent = publish(feed, made)
        assert set(sent.confirmed) == set(sent.files)
        assert (sent.bytes_sent, sent.bytes_there) == (size_of(made), 0)
        back = pull(feed, PackageQuery("org/model", "cpu"), tmp_path / "back", store=store)
        assert check_build(back.folder).whole
        assert content(back.folder) == content(made)
        assert (back.digest, back.bytes_received) == (sent.digest, size_of(made))

    def test_publishing_again_sends_nothing(self, feed: Feed, tmp_path: Path) -> None:
        made = write_build(tmp_path / "build")
        first = publish(feed, made)
        again = publish(feed, made)
        assert (again.already, again.bytes_sent, again.bytes_there) == (True, 0, size_of(made))
        assert again.digest == first.digest

    def test_the_same_built_again_is_the_same_whenever_and_however_fast(self, feed: Feed, tmp_path: Path) -> None:
        publish(feed, write_build(tmp_path / "build", seconds=1.0))
        again = publish(feed, write_build(tmp_path / "again", seconds=2.0))
        assert again.already
        # The feed has another manifest, so the local one is not called safe.
        assert {file.name for file in again.confirmed} == {"model.onnx", "model.onnx.data"}

    def test_what_targets_share_is_sent_once(self, feed: Feed, tmp_path: Path) -> None:
        publish(feed, write_build(tmp_path / "a"))
        other = publish(feed, write_build(tmp_path / "b", target="qnn-npu", model=b"other graph"))
        self.check_shared(other)

    def check_shared(self, other: PublishResult) -> None:
        """Override where a feed has no files of its own, only whole packages."""
        assert other.bytes_there == len(WEIGHTS)

    def test_a_version_stays_what_it_is(self, feed: Feed, store: Store, tmp_path: Path) -> None:
        name = Package("org/model", "cpu", "fp32", "1.0")
        publish(feed, write_build(tmp_path / "a"), name)
        with pytest.raises(FeedError) as caught:
            publish(feed, write_build(tmp_path / "b", model=b"other"), name)
        assert caught.value.kind == "conflict"
        back = self.pulled(feed, store, tmp_path / "back", version="1.0")
        assert (back.folder / "model.onnx").read_bytes() == b"graph"

    def test_the_newest_is_pulled_unless_another_is_asked_for(self, feed: Feed, store: Store, tmp_path: Path) -> None:
        for version in (b"first", b"second"):
            self.tick()
            publish(feed, write_build(tmp_path / version.decode(), model=version))
        publish(feed, write_build(tmp_path / "c", model=b"third"), Package("org/other", "cpu", "fp32"))
        newest = self.pulled(feed, store, tmp_path / "newest")
        assert (newest.folder / "model.onnx").read_bytes() == b"second"

    def tick(self) -> None:
        """Override to wait, where the feed's clock is coarse."""

    def test_names_that_look_alike_are_different_packages(self, feed: Feed, store: Store, tmp_path: Path) -> None:
        names = [Package(model, "cpu", bits) for model in ("a/b-c", "a-b/c") for bits in ("fp32", "w8a16")]
        for place, name in enumerate(names):
            build = write_build(tmp_path / str(place), model=str(name).encode(), precision=name.precision)
            publish(feed, build, name)
        for place, name in enumerate(names):
            query = PackageQuery(name.model, "cpu", name.precision)
            back = pull(feed, query, tmp_path / f"back{place}", store=store)
            assert (back.folder / "model.onnx").read_bytes() == str(name).encode()

    def test_which_precision_must_be_said_where_there_are_two(self, feed: Feed, store: Store, tmp_path: Path) -> None:
        for bits in ("fp32", "w8a16"):
            publish(feed, write_build(tmp_path / bits, precision=bits))
        with pytest.raises(UsageError, match="more than once"):
            self.pulled(feed, store, tmp_path / "back")
        assert not (tmp_path / "back").exists()

    def test_what_is_not_there_is_refused_and_nothing_is_written(
        self, feed: Feed, store: Store, tmp_path: Path
    ) -> None:
        publish(feed, write_build(tmp_path / "a"))
        with pytest.raises(FeedError) as caught:
            pull(feed, PackageQuery("org/model", "qnn-npu"), tmp_path / "back", store=store)
        assert caught.value.kind == "refused"
        assert "for cpu, fp32" in caught.value.cause
        assert not (tmp_path / "back").exists()

    def test_odd_names_are_taken(self, feed: Feed, store: Store, tmp_path: Path) -> None:
        name = Package("Ünï/CON..x__y " + "long" * 60, "qnn-npu:htp_arch=73,soc=x-elite", "w8a16", "v 1/β")
        publish(feed, write_build(tmp_path / "a", target=name.target, precision="w8a16"), name)
        query = PackageQuery(name.model, name.target, version=name.version)
        assert pull(feed, query, tmp_path / "back", store=store).package == name

    def pulled(self, feed: Feed, store: Store, folder: Path, **said: Any) -> PullResult:
        return pull(feed, PackageQuery("org/model", "cpu", **said), folder, store=store)


def write_build(
    folder: Path,
    *,
    model: bytes = b"graph",
    target: str = "cpu",
    precision: str = "fp32",
    seconds: float = 1.0,
    companions: Mapping[str, bytes] | None = None,
) -> Path:
    """A build folder as a build writes it, without building."""
    files = {"model.onnx": model, "model.onnx.data": WEIGHTS}
    extra = companions or {}
    for name, data in {**files, **extra}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    document = {
        "schema_version": MANIFEST_VERSION,
        "source": {"name": "org/model", "identity": "sha256:0", "task": None},
        "target": target,
        "precision": precision,
        "passed": True,
        "recipe": {},
        "components": [{**_part(files), "stages": [{"stage": "optimize", "seconds": seconds}]}],
        "companions": _facts(extra),
        "links": [],
        "seal": SEAL,
    }
    (folder / MANIFEST).write_bytes(sealed(dumps(document)))
    return folder


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a build folder; not the note of where it came from."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def size_of(folder: Path) -> int:
    return sum(map(len, content(folder).values()))


def _part(files: Mapping[str, bytes]) -> dict[str, Any]:
    return {"name": "model", "folder": "", "files": _facts(files), "inputs": []}


def _facts(files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    return [
        {"name": name, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in files.items()
    ]
