"""One `.npz` file read row by row, so that a large archive never sits in memory."""

from __future__ import annotations

import contextlib
import math
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.graph import ValueSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.lib import format as npy
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    npy = lazy("numpy.lib.format")


@dataclass(frozen=True)
class _Column:
    """One array of the archive, cut along its first axis."""

    name: str
    stream: IO[bytes]
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    samples: int

    def next(self) -> NDArray[Any]:
        wanted = math.prod(self.shape) * self.dtype.itemsize
        data = self.stream.read(wanted)
        if len(data) != wanted:
            raise EOFError(f"array {self.name} ends early")
        return np.frombuffer(data, self.dtype).reshape(self.shape)


class NpzRows:
    """Iterating gives the samples. Each array is `(N, *input shape)` or cut along the input's batch axis."""

    def __init__(self, path: str, signature: Sequence[ValueSpec]) -> None:
        self._path = Path(path)
        self._ranks = {spec.name: spec.shape for spec in signature}

    def __iter__(self) -> Iterator[dict[str, NDArray[Any]]]:
        with contextlib.ExitStack() as stack:
            try:
                archive = stack.enter_context(zipfile.ZipFile(self._path))
                columns = [self._open(archive, name, stack) for name in archive.namelist()]
                self._require_equal(columns)
                for _ in range(columns[0].samples if columns else 0):
                    yield {column.name: column.next() for column in columns}
            except FileNotFoundError as error:
                raise self._bad("no such file") from error
            except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
                raise self._bad(str(error) or type(error).__name__) from error

    def _open(self, archive: zipfile.ZipFile, member: str, stack: contextlib.ExitStack) -> _Column:
        stream = stack.enter_context(archive.open(member))
        major, _ = npy.read_magic(stream)
        reader = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
        shape, fortran, dtype = reader(stream)
        name = member.removesuffix(".npy")
        if dtype.hasobject:
            raise ValueError(f"array {name} holds Python objects")
        if fortran and len(shape) > 1:
            raise ValueError(f"array {name} is stored in Fortran order; save numpy.ascontiguousarray(array)")
        if not shape:
            raise ValueError(f"array {name} has no sample axis")
        return self._column(name, stream, dtype, shape)

    def _column(self, name: str, stream: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, ...]) -> _Column:
        declared = self._ranks.get(name)
        if declared is None or len(shape) != len(declared):
            return _Column(name, stream, dtype, shape[1:], shape[0])
        batch = declared[0] if declared and isinstance(declared[0], int) else 1
        if not batch or shape[0] % batch:
            raise ValueError(f"array {name} has {shape[0]} rows, which is no multiple of the batch of {batch}")
        return _Column(name, stream, dtype, (batch, *shape[1:]), shape[0] // batch)

    def _require_equal(self, columns: Sequence[_Column]) -> None:
        if len({column.samples for column in columns}) > 1:
            counts = ", ".join(f"{column.name} {column.samples}" for column in columns)
            raise ValueError(f"the arrays hold different numbers of samples: {counts}")

    def _bad(self, cause: str) -> InputError:
        return InputError(
            f"{self._path.name} cannot be used for calibration",
            cause=cause,
            fix="Write it with numpy.savez(path, name=array, ...): one array per input, samples along axis 0.",
        )
