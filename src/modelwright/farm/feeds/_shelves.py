"""Feeds that keep files by their digest, once for all packages of a model, and descriptions by name."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from modelwright.farm.feeds._feed import Feed, OnBytes
from modelwright.farm.feeds._package import Package, Shipment
from modelwright.models import FileDigest


class BlobFeed(Feed):
    """The description is written last: until then nothing has the name, and after that everything is there."""

    @abstractmethod
    def _description(self, package: Package) -> bytes | None:
        """None only when the feed says that there is none."""

    @abstractmethod
    def _describe(self, shipment: Shipment) -> None:
        """Write the description, whole or not at all."""

    @abstractmethod
    def _holds(self, package: Package, file: FileDigest) -> bool:
        """Whether the feed has this very content."""

    @abstractmethod
    def _upload(self, package: Package, file: FileDigest, path: Path, on_bytes: OnBytes) -> None: ...

    @abstractmethod
    def _download(self, package: Package, file: FileDigest, path: Path, on_bytes: OnBytes) -> None: ...

    def find(self, package: Package) -> Shipment | None:
        data = self._description(package)
        return None if data is None else self.described(package, data)

    def confirm(self, shipment: Shipment) -> tuple[FileDigest, ...]:
        return tuple(file for file in shipment.files if self._holds(shipment.package, file))

    def send(self, shipment: Shipment, folder: Path, on_bytes: OnBytes) -> None:
        for file in shipment.files:
            if not self._holds(shipment.package, file):
                self._upload(shipment.package, file, folder / file.name, on_bytes)
        self._describe(shipment)

    def fetch(self, shipment: Shipment, folder: Path, on_bytes: OnBytes) -> None:
        for file in shipment.files:
            path = folder / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            self._download(shipment.package, file, path, on_bytes)
