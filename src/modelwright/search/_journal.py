"""What happened in a search, line by line on disk: a search that was killed goes on from here."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from modelwright import _json
from modelwright.search._events import SearchEvent

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in get_args(SearchEvent)}
_SEED, _AGAIN = "seed", "again"


class SearchJournal:
    """The first line is the seed of all coins. A line that a kill cut short is not there."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, seed: int) -> int:
        """The seed that this search began with, now or earlier."""
        found = next(self._lines(), None)
        if found is not None and isinstance(found.get(_SEED), int):
            self._cut()
            return int(found[_SEED])
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_bytes(b"")
        self._append({_SEED: seed})
        return seed

    def events(self) -> list[SearchEvent]:
        """All that count: what was to be measured again is in the file and no longer here."""
        found: list[SearchEvent] = []
        for line in self._lines():
            kind = _KINDS.get(str(line.get("event")))
            if kind is not None:
                found.append(kind(**{key: value for key, value in line.items() if key != "event"}))
            elif isinstance(again := line.get(_AGAIN), list):
                found = [event for event in found if again and event.label not in again]
        return found

    def add(self, event: SearchEvent) -> None:
        self._append({"event": type(event).__name__, **_json.plain(event)})

    def again(self, labels: Iterable[str] = ()) -> None:
        """Measure these anew, or everything; what was measured before stays in the file."""
        self._append({_AGAIN: list(labels)})

    def _lines(self) -> Iterator[dict[str, Any]]:
        return (found for _, found in self._readable())

    def _readable(self) -> Iterator[tuple[bytes, dict[str, Any]]]:
        """Up to the first that is not."""
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
            yield line, found

    def _cut(self) -> None:
        """What a kill left of a line would spoil the next one."""
        whole, text = sum(len(line) for line, _ in self._readable()), self._path.read_bytes()
        if len(text) > whole:
            part = self._path.with_suffix(".part")
            part.write_bytes(text[:whole])
            part.replace(self._path)

    def _append(self, line: dict[str, Any]) -> None:
        with self._path.open("ab") as file:
            file.write(json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
