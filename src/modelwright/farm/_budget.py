"""How much of the disk a matrix may take: a reservation before each build, and what goes when there is no room."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright.models import HfSource, OnnxSource, model_files
from modelwright.pipeline import Recipe
from modelwright.plans import History
from modelwright.store import Store

_LOOK_S = 0.5
_GRACE_S = 120.0
_MADE = ("optimize", "quantize", "compile")


@dataclass(frozen=True)
class DiskUse:
    """Bytes. `limit` is what was allowed, null for no limit; `peak` the most that was seen in the store and beside it,
    by looking every half second; `evicted` what went to make room; `kept` what the store has now."""

    limit: int | None
    peak: int
    evicted: int
    kept: int


class DiskBudget:
    """Only the store is counted and cleaned, and only of what nobody holds: it can be made again. No other cache is
    touched, not that of the Hub either."""

    def __init__(self, store: Store, limit: int | None) -> None:
        self._store, self._limit = store, limit
        self._history = History(store)
        self._reserved: dict[Any, int] = {}
        self._peak = self._evicted = 0
        self._looked = 0.0
        self._guard = threading.Lock()

    def reserve(self, owner: Any, need: int, *, alone: bool) -> bool:
        """Whether there is room for so much more, after making some where that is possible. While others are at work,
        what was used lately stays: it may be a result that nobody holds yet."""
        if self._limit is not None:
            room = self._limit - sum(self._reserved.values()) - need
            if room < 0 or not self._fits(room, (_GRACE_S, 0.0) if alone else (_GRACE_S,)):
                return False
        self._reserved[owner] = need
        return True

    def used(self, owner: Any, size: int) -> None:
        """So much of what was reserved is in the store now."""
        self._reserved[owner] = max(0, self._reserved[owner] - size)

    def free(self, owner: Any) -> None:
        self._reserved.pop(owner, None)

    def _fits(self, room: int, graces: tuple[float, ...]) -> bool:
        """In the store there is not more than `room`; the oldest goes first, what was just used only if it must."""
        for grace_s in graces:
            if self._store.stats().bytes <= room:
                return True
            self._evicted += self._store.gc(room, grace_s=grace_s).freed_bytes
        return self._store.stats().bytes <= room

    def need(self, source: OnnxSource | HfSource, recipes: list[Recipe]) -> int:
        """What its builds will keep, each distinct result once: told by earlier runs, else as large as the source."""
        size = _source_bytes(source)
        sections = {
            (stage, str(_upto(recipe, stage))) for recipe in recipes for stage in _MADE if getattr(recipe, stage)
        }
        known = (self._history.forecast(stage, size) for stage, _ in sections)
        # One more for what a stage reads beside what it writes: a model with external data is copied to be opened.
        return 2 * size + sum(size if found is None else found.output_bytes for found in known)

    def look(self) -> None:
        """Measure, at most every half second; called from wherever something happens."""
        with self._guard:
            if time.monotonic() - self._looked < _LOOK_S:
                return
            self._looked = time.monotonic()
            self._peak = max(self._peak, _bytes_under(self._store.root))

    def report(self) -> DiskUse:
        self._looked = 0.0
        self.look()
        return DiskUse(self._limit, self._peak, self._evicted, self._store.stats().bytes)


def _upto(recipe: Recipe, stage: str) -> list[Any]:
    return [recipe.inputs, *(getattr(recipe, name) for name in _MADE[: _MADE.index(stage) + 1])]


def _source_bytes(source: OnnxSource | HfSource) -> int:
    if isinstance(source, HfSource):
        return source.weight_bytes() or 0
    return sum(file.size for file in model_files(Path(source.path)))


def _bytes_under(root: Path) -> int:
    """Of the store, its temporary files, and the scratch folder beside it."""
    return sum(size for folder in (root, root.parent / "scratch") for size in _sizes(folder))


def _sizes(folder: Path) -> Iterator[int]:
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    yield from _sizes(Path(entry.path))
                else:
                    status = entry.stat(follow_symlinks=False)
                    yield status.st_size // max(1, status.st_nlink)
