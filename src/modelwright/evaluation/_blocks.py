"""How many samples are taken at a time.

A model of a tenth of a millisecond pushes everything else out of the processor's caches: reading, running and scoring
in turns costs twice as much as a block of each. A slow one is taken sample by sample, so that people see it move and
little is lost when it ends early.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any, TypeVar

T = TypeVar("T")
_MOST = 64
_SHORT_S, _LONG_S = 0.1, 0.5
_MOST_BYTES = 16 << 20


class SampleBlocks:
    """Cuts samples into blocks of `size`, or more of them while `grows` is true and a block takes no time."""

    def __init__(self, size: int, *, grows: bool) -> None:
        self._size = self._least = size
        self._grows = grows
        self._held = 0

    def of(self, samples: Iterator[T]) -> Iterator[list[T]]:
        began = time.monotonic()
        while block := list(itertools.islice(samples, self._size)):
            yield block
            now = time.monotonic()
            self._adapt(now - began)
            began = now

    def held(self, arrays: Iterator[Any]) -> None:
        """What the block kept in memory."""
        self._held = sum(array.nbytes for array in arrays)

    def _adapt(self, took_s: float) -> None:
        if took_s > _LONG_S or self._held > _MOST_BYTES:
            self._size = max(self._least, self._size // 2)
        elif self._grows and took_s < _SHORT_S and 2 * self._held <= _MOST_BYTES:
            self._size = min(_MOST * self._least, 2 * self._size)
