"""Bytes that go over the wire, counted and told."""

from __future__ import annotations

from collections import Counter

from modelwright.farm.feeds._package import Shipment
from modelwright.vocabulary import OnProgress, Progress

_STEPS = 200
"""Nobody sees more."""


class ByteCount:
    """Hears of every piece of a file; tells how much of the package that is."""

    def __init__(self, doing: str, shipment: Shipment, on_progress: OnProgress) -> None:
        self._doing, self._shipment, self._on_progress = doing, shipment, on_progress
        self._moved: Counter[str] = Counter()
        self._told = 0

    def __call__(self, name: str, count: int) -> None:
        self._moved[name] += count
        whole = self._shipment.size or 1
        self._on_progress(
            Progress(f"{self._doing} {name}", min(1.0, self.moved / whole), label=self._shipment.package.target)
        )

    @property
    def moved(self) -> int:
        """All that went over the wire, more than the package where something had to be sent twice."""
        return self._moved.total()

    @property
    def untouched(self) -> int:
        """The size of the files of which nothing moved."""
        return sum(file.size for file in self._shipment.files if file.name not in self._moved)
