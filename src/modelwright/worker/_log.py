"""A log that cannot grow: the head as it comes, the tail at the end, and how much was cut between them."""

from __future__ import annotations

import contextlib
from collections import deque
from pathlib import Path

HEAD_BYTES = 512 << 10
TAIL_BYTES = 512 << 10


class BoundedLog:
    """The output of one child. Between calls it waits for the next one. A full disk must not stop it."""

    def __init__(self) -> None:
        self.total = 0
        self._path: Path | None = None
        self._head = 0
        self._pending = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._seen = 0

    def begin(self, path: str) -> None:
        self._path, self._head, self._seen = Path(path), 0, 0
        pending, self._pending = bytes(self._pending), bytearray()
        if pending:
            self._record(pending)

    def write(self, chunk: bytes) -> None:
        self.total += len(chunk)
        if self._path is not None:
            self._record(chunk)
        elif len(self._pending) < HEAD_BYTES:
            self._pending += chunk

    def finish(self) -> int:
        """Write the tail; the number of bytes the child printed during this call."""
        cut = self._seen - self._head - self._tail_size
        if cut:
            self._append(f"\n[modelwright: {cut} bytes cut here]\n".encode())
        self._append(b"".join(self._tail))
        self._tail.clear()
        self._tail_size = 0
        self._path = None
        return self._seen

    def _record(self, chunk: bytes) -> None:
        self._seen += len(chunk)
        head = chunk[: HEAD_BYTES - self._head]
        self._head += len(head)
        self._append(head)
        if rest := chunk[len(head) :]:
            self._tail.append(rest)
            self._tail_size += len(rest)
        while self._tail and self._tail_size - len(self._tail[0]) >= TAIL_BYTES:
            self._tail_size -= len(self._tail.popleft())

    def _append(self, data: bytes) -> None:
        if data and self._path is not None:
            with contextlib.suppress(OSError), self._path.open("ab") as file:
                file.write(data)
