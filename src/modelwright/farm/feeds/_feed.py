"""What every feed can do; `modelwright.testing.FeedSuite` holds each to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from modelwright._dataclass import dataclass
from modelwright.farm.feeds._errors import corrupt
from modelwright.farm.feeds._package import Package, Shipment, read_shipment
from modelwright.models import FileDigest

OnBytes: TypeAlias = Callable[[str, int], None]
"""Told the name of a file and how many more bytes of it went over the wire."""


@dataclass(frozen=True)
class Offered:
    """A package as a feed lists it. `since` is when it came there, in seconds since 1970, by the feed's own clock."""

    package: Package
    since: float


class Feed(ABC):
    """A place for packages. Answers come from the feed itself, now: nothing is remembered here.

    Every failure is a `FeedError` of the right kind. A call that fails leaves no package half there: it can be found
    whole, or not at all. Methods may be called from several threads and processes at once.
    """

    address: str
    folder: Path | None = None
    """Where it is on this machine, if it is a folder."""

    @abstractmethod
    def preflight(self) -> None:
        """Find out before any work that publishing could not succeed: tools, credentials, reachability, writability."""

    @abstractmethod
    def find(self, package: Package) -> Shipment | None:
        """What the feed has under this name; None only when it said that there is nothing, never when it did not answer
        or listed less than all."""

    @abstractmethod
    def confirm(self, shipment: Shipment) -> tuple[FileDigest, ...]:
        """Those files that the feed holds with this very digest, by its own word or by reading them back."""

    @abstractmethod
    def send(self, shipment: Shipment, folder: Path, on_bytes: OnBytes) -> None:
        """Bring the files, sending none that is there (`on_bytes` hears of those sent), and then the name."""

    @abstractmethod
    def fetch(self, shipment: Shipment, folder: Path, on_bytes: OnBytes) -> None:
        """Write its files into an empty folder. Who calls checks every digest."""

    @abstractmethod
    def offers(self, model: str) -> tuple[Offered, ...]:
        """All packages of a model."""

    def described(self, package: Package, data: bytes) -> Shipment:
        """What the feed has under this name, by its description there."""
        try:
            found = read_shipment(data)
        except ValueError as error:
            raise corrupt(f"{self.address} has a damaged description of {package}", str(error)[:200]) from error
        if found.package != package:
            raise corrupt(f"{self.address} has another package as {package}", f"it says that it is {found.package}")
        return found

    @abstractmethod
    def reference(self, shipment: Shipment) -> str:
        """What this package is called for other tools of that feed."""
