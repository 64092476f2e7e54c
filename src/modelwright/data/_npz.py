"""The arrays of an `.npz` file by their headers, which are checked before anything is unpacked."""

from __future__ import annotations

import contextlib
import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.models import require_file

if TYPE_CHECKING:
    import numpy as np
    import psutil
    from numpy.lib import format as npy
    from numpy.typing import NDArray
else:
    psutil = lazy("psutil")
    npy = lazy("numpy.lib.format")

_SUFFIX = ".npy"
# What zipfile and numpy raise for files that are damaged, encrypted, or packed in a way they do not know.
UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    SyntaxError,
    MemoryError,
    RuntimeError,
    OverflowError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
    tokenize.TokenError,
)


@dataclass(frozen=True)
class Header:
    """What is said about one array in front of it."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Npz:
    """An open file. Its headers say no more than its members hold, and all of it fits into memory."""

    archive: zipfile.ZipFile
    headers: tuple[Header, ...]

    def read(self, name: str) -> NDArray[Any]:
        with self.archive.open(name + _SUFFIX) as stream:
            return native(npy.read_array(stream, allow_pickle=False))

    def stream(self, name: str) -> IO[bytes]:
        """The values, from the first one on."""
        stream = self.archive.open(name + _SUFFIX)
        _header(stream, name)
        return stream


@contextlib.contextmanager
def open_npz(path: Path) -> Iterator[Npz]:
    """Raises one of `UNREADABLE` for what is no such file; pickled objects are never loaded."""
    require_file(path)
    with path.open("rb") as opened, zipfile.ZipFile(opened) as archive:
        headers = tuple(_checked(archive, entry) for entry in archive.infolist())
        names = [header.name for header in headers]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two arrays are called {twice}")
        yield Npz(archive, headers)


def read_npy(path: Path) -> NDArray[Any]:
    """One array in a file of its own, under the same rules."""
    require_file(path)
    with path.open("rb") as stream:
        header = _header(stream, path.name)
        _require_honest(header, os.fstat(stream.fileno()).st_size - stream.tell())
        require_memory((header,))
        stream.seek(0)
        return native(npy.read_array(stream, allow_pickle=False))


def native(array: NDArray[Any]) -> NDArray[Any]:
    """In this machine's byte order. onnxruntime reads the bytes of other ones as they are, without a word."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def require_memory(headers: tuple[Header, ...]) -> None:
    """Asked by those who read whole arrays: a few packed kilobytes can hold more than this machine."""
    wanted, free = sum(header.size_bytes for header in headers), psutil.virtual_memory().available
    if wanted > free:
        raise ValueError(f"its arrays take {wanted / 2**30:,.1f} GiB, and {free / 2**30:,.1f} GiB of memory are free")


def _checked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Header:
    if not entry.filename.endswith(_SUFFIX):
        raise ValueError(f"{entry.filename} in it is not an array")
    with archive.open(entry) as stream:
        header = _header(stream, entry.filename.removesuffix(_SUFFIX))
        _require_honest(header, entry.file_size - stream.tell())
    return header


def _require_honest(header: Header, behind: int) -> None:
    """`behind` are the bytes that follow it."""
    if header.dtype.hasobject:
        raise ValueError(f"array {header.name} holds Python objects")
    if min(header.shape, default=0) < 0 or header.size_bytes != behind:
        raise ValueError(f"array {header.name} says it is {header.dtype} {header.shape}, but it holds {behind:,} bytes")


def _header(stream: IO[bytes], name: str) -> Header:
    major, _ = npy.read_magic(stream)
    reader = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    shape, fortran, dtype = reader(stream)
    return Header(name, dtype, shape, fortran)
