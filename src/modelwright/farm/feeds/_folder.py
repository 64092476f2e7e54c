"""A folder as a feed: on this disk, a mounted share, or a stick that travels."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._disk import disk_error, lacks_room
from modelwright._lazy import lazy
from modelwright.farm.feeds._errors import FeedError, corrupt
from modelwright.farm.feeds._feed import Offered, OnBytes
from modelwright.farm.feeds._names import path_name
from modelwright.farm.feeds._package import LARGEST_DESCRIPTION, Package, Shipment, package_in
from modelwright.farm.feeds._shelves import BlobFeed
from modelwright.models import FileDigest, file_digest

if TYPE_CHECKING:
    import tempfile
else:
    tempfile = lazy("tempfile")

_CHUNK = 1 << 20


class FolderFeed(BlobFeed):
    """`blobs/` by digest, shared by all models; `models/` has a description for each package.

    Files come under a temporary name and are renamed, so nobody sees half of one.
    """

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.abspath(root))  # noqa: PTH100 - resolve() would follow a link
        self.address, self.folder = str(self._root), self._root

    def preflight(self) -> None:
        with self._errors("write to it"):
            self._root.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._root, prefix=".wright-"):
                pass

    def reference(self, shipment: Shipment) -> str:
        return str(self._place(shipment.package))

    def offers(self, model: str) -> tuple[Offered, ...]:
        folder = self._root / "models" / path_name(model)
        with self._errors("list it"):
            self._require()
            found = [(path.read_bytes(), path.stat().st_mtime) for path in sorted(folder.glob("*.json"))]
        named = [(package_in(data), since) for data, since in found]
        return tuple(Offered(package, since) for package, since in named if package and package.model == model)

    def _place(self, package: Package) -> Path:
        return self._root / "models" / package.repository / f"{package.tag}.json"

    def _blob(self, file: FileDigest) -> Path:
        return self._root / "blobs" / "sha256" / file.sha256[:2] / file.sha256

    def _description(self, package: Package) -> bytes | None:
        with self._errors("read a description"):
            self._require()
            try:
                with self._place(package).open("rb") as stream:
                    return stream.read(LARGEST_DESCRIPTION + 1)
            except FileNotFoundError:
                return None

    def _describe(self, shipment: Shipment) -> None:
        with self._errors("write a description"), _new_file(self._place(shipment.package)) as draft:
            draft.write_bytes(shipment.description)

    def _holds(self, package: Package, file: FileDigest) -> bool:
        """By reading it: on a disk nobody else vouches for a digest."""
        path = self._blob(file)
        with self._errors("read a file"):
            return path.is_file() and path.stat().st_size == file.size and file_digest(path) == file.sha256

    def _upload(self, package: Package, file: FileDigest, path: Path, on_bytes: OnBytes) -> None:
        with self._errors("write a file"), _new_file(self._blob(file)) as draft:
            _copy(path, draft, file, on_bytes)

    def _download(self, package: Package, file: FileDigest, path: Path, on_bytes: OnBytes) -> None:
        if not self._blob(file).is_file():
            raise corrupt(f"{self.address} lacks a file of {package}", f"{file.name} is not at {self._blob(file)}")
        with self._errors("read a file"):
            _copy(self._blob(file), path, file, on_bytes)

    def _require(self) -> None:
        """A share that is not mounted is an empty folder, or none; that is not the same as an empty feed."""
        if not self._root.is_dir():
            raise FeedError(
                f"{self.address} cannot be read",
                kind="unavailable",
                cause="there is no such folder",
                fix="check the path; `publish` makes the folder",
            )

    @contextlib.contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if lacks_room(error):
                raise disk_error(error, self._root, f"publish to {self.address}") from error
            raise FeedError(
                f"{self.address}: could not {doing}",
                kind="auth" if isinstance(error, PermissionError) else "unavailable",
                cause=f"{error.strerror or type(error).__name__} at {error.filename or self._root}",
                fix="check that the folder is there and that you may write to it",
            ) from error


@contextlib.contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".wright-")
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        draft.chmod(0o644)
        with draft.open("r+b") as stream:
            os.fsync(stream.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _copy(source: Path, target: Path, file: FileDigest, on_bytes: OnBytes) -> None:
    with source.open("rb") as reader, target.open("wb") as writer:
        while piece := reader.read(_CHUNK):
            writer.write(piece)
            on_bytes(file.name, len(piece))
