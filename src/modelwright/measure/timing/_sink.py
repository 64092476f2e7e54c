"""Where timings go while they are taken: memory, or a mapped file that outlives a crash of the process.

Storing a sample is one write to memory, so another process can read the file at any time and the loop never knows.
Imported by foreign interpreters too, so: standard library and numpy only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Nanoseconds = NDArray[np.int64]
else:
    np = lazy("numpy")

_BLOCK = 4096
_WORD = 8
_WARMING = -1


class SampleSink:
    """Takes durations in nanoseconds, warm-up first. Zero means "not taken": no run lasts 0 ns.

    The file is a row of int64: where the measured samples begin (-1 during the warm-up), then the samples.
    """

    def __init__(self, path: str | None = None) -> None:
        self._path = path
        self._count = 0
        self._blocks: list[Nanoseconds] = []
        self._start = self._map(0, 1)
        self._start[0] = _WARMING
        self._free = self._map(1, 0)

    def room(self) -> Nanoseconds:
        """The free part of the current block, never empty. Write there, then `advance`."""
        if len(self._free) == 0:
            self._free = self._map(1 + self._count, _BLOCK)
            self._blocks.append(self._free)
        return self._free

    def advance(self, count: int) -> None:
        """The first `count` places of `room` are filled."""
        self._count += count
        self._free = self._free[count:]

    def warmed(self) -> None:
        """What comes from now on is measured."""
        self._start[0] = self._count

    def samples(self) -> tuple[Nanoseconds, Nanoseconds]:
        """Warm-up and measured samples so far."""
        blocks = self._blocks or [np.zeros(0, np.int64)]
        return _split(int(self._start[0]), np.concatenate(blocks)[: self._count])

    def _map(self, offset: int, count: int) -> Nanoseconds:
        if self._path is None or count == 0:
            return np.zeros(count, np.int64)
        with Path(self._path).open("ab") as file:
            file.truncate((offset + count) * _WORD)
        mapped: Nanoseconds = np.memmap(self._path, np.int64, "r+", offset * _WORD, (count,))
        return mapped


def read_samples(path: str | Path) -> tuple[Nanoseconds, Nanoseconds]:
    """Warm-up and measured samples in a sink's file, whoever wrote it and however that ended."""
    try:
        words = np.fromfile(path, np.int64)
    except FileNotFoundError:
        words = np.zeros(0, np.int64)
    if len(words) == 0:
        return words, words
    taken = words[1:]
    return _split(int(words[0]), taken[: _filled(taken)])


def recent_samples(path: str | Path, count: int = 240) -> Nanoseconds:
    """The last samples in a sink's file, warm-up or not; cheap however long the file is."""
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(_WORD, size - 2 * _BLOCK * _WORD))
            words = np.frombuffer(file.read(), np.int64)
    except FileNotFoundError:
        return np.zeros(0, np.int64)
    return words[: _filled(words)][-count:]


def _filled(words: Nanoseconds) -> int:
    empty = np.flatnonzero(words == 0)
    return int(empty[0]) if len(empty) else len(words)


def _split(start: int, samples: Nanoseconds) -> tuple[Nanoseconds, Nanoseconds]:
    begin = len(samples) if start == _WARMING else start
    return samples[:begin], samples[begin:]
