"""What happened in a search, line by line on disk: a search that was killed goes on from here."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from modelwright import _json
from modelwright.search._events import (
    SearchEvent,
    UnitTaken,
    VariantDropped,
    VariantMade,
    VariantRebuilt,
    VariantTried,
)

_KINDS: dict[str, Any] = {
    kind.__name__: kind for kind in (VariantMade, VariantDropped, VariantTried, UnitTaken, VariantRebuilt)
}
_SEED = "seed"


class SearchJournal:
    """The first line is the seed of all coins. A line that a kill cut short is not there."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, seed: int) -> int:
        """The seed that this search began with, now or earlier."""
        found = next(self._lines(), None)
        if found is not None and isinstance(found.get(_SEED), int):
            return int(found[_SEED])
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_bytes(b"")
        self._append({_SEED: seed})
        return seed

    def events(self) -> Iterator[SearchEvent]:
        for line in self._lines():
            kind = _KINDS.get(str(line.pop("event", None)))
            if kind is not None:
                yield kind(**line)

    def add(self, event: SearchEvent) -> None:
        self._append({"event": type(event).__name__, **_json.plain(event)})

    def forget(self) -> None:
        self._path.unlink(missing_ok=True)

    def keep(self, count: int) -> None:
        """Only the first events; those after them belong to what would not be done again."""
        lines = self._path.read_bytes().splitlines(keepends=True)[: count + 1]
        part = self._path.with_suffix(".part")
        part.write_bytes(b"".join(lines))
        part.replace(self._path)

    def _lines(self) -> Iterator[dict[str, Any]]:
        if not self._path.exists():
            return
        for line in self._path.read_bytes().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                return
            try:
                found = _json.loads(line)
            except ValueError:
                return
            if not isinstance(found, dict):
                return
            yield found

    def _append(self, line: dict[str, Any]) -> None:
        with self._path.open("ab") as file:
            file.write(json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
