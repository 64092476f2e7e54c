"""Values on their way between two processes. Large ones go through a mapped file, not through the socket."""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass

INLINE_BYTES = 64 << 10
_ALIGNMENT = 64
_SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Payload:
    """A pickled value. The parts (the pickle, then its buffers) are here, or in `file` with these sizes."""

    parts: tuple[bytes, ...] = ()
    file: str | None = None
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Scratch:
    """Folders for large values, the fastest first. Both sides of a channel use the same ones."""

    folders: tuple[str, ...]

    @classmethod
    def create(cls) -> Scratch:
        roots = [Path(tempfile.gettempdir())]
        if sys.platform == "linux" and os.access(_SHARED_MEMORY, os.W_OK):
            roots.insert(0, _SHARED_MEMORY)
        prefix = f"modelwright-{os.getpid()}-"
        return cls(tuple(tempfile.mkdtemp(prefix=prefix, dir=root) for root in roots))

    def roomy(self, size: int) -> str:
        """The first folder with space for `size` and as much again; else the last, which then says ENOSPC."""
        for folder in self.folders[:-1]:
            if shutil.disk_usage(folder).free > 2 * size:
                return folder
        return self.folders[-1]

    def remove(self) -> None:
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)


def pack(value: object, scratch: Scratch) -> Payload:
    """Pickle `value`; everything goes to one scratch file when it is too large for the socket."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    parts = [memoryview(data), *(buffer.raw() for buffer in buffers)]
    if sum(part.nbytes for part in parts) <= INLINE_BYTES:
        return Payload(parts=tuple(bytes(part) for part in parts))
    return _spill(parts, scratch)


def unpack(parcel: Payload) -> Any:
    """The value. Arrays from a file are private writable mappings of it; its name is gone after this."""
    parts = _load(parcel) if parcel.file is not None else [bytearray(part) for part in parcel.parts]
    return pickle.loads(parts[0], buffers=parts[1:])


def _spill(parts: Sequence[memoryview], scratch: Scratch) -> Payload:
    folder = scratch.roomy(sum(part.nbytes for part in parts))
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        for part in parts:
            file.write(part)
            file.seek(_aligned(file.tell()))
        file.truncate()
    return Payload(file=file.name, sizes=tuple(part.nbytes for part in parts))


def _load(parcel: Payload) -> list[memoryview]:
    path = Path(str(parcel.file))
    with path.open("rb") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    # Windows cannot unlink a mapped file; there it goes with its folder.
    with contextlib.suppress(PermissionError):
        path.unlink()
    parts, offset = [], 0
    for size in parcel.sizes:
        parts.append(mapped[offset : offset + size])
        offset = _aligned(offset + size)
    return parts


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
