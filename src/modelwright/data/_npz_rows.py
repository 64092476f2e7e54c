"""One `.npz` file read row by row, so that a large archive never sits in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.data._given import require_shapes
from modelwright.data._npz import UNREADABLE, Header, Npz, native, open_npz, require_memory
from modelwright.errors import InputError
from modelwright.graph import ValueSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")


@dataclass(frozen=True)
class _Column:
    """One array of the archive, cut along its first axis."""

    row: Header
    stream: IO[bytes]
    samples: int

    def next(self) -> NDArray[Any]:
        wanted = self.row.size_bytes
        data = self.stream.read(wanted)
        if len(data) != wanted:
            raise EOFError(f"array {self.row.name} ends early")
        return native(np.frombuffer(data, self.row.dtype).reshape(self.row.shape))


class NpzRows:
    """Iterating gives the samples. Each array is `(N, *input shape)` or cut along the input's batch axis."""

    def __init__(self, path: str, signature: Sequence[ValueSpec]) -> None:
        self._path = Path(path)
        self._signature = tuple(signature)

    def __iter__(self) -> Iterator[dict[str, NDArray[Any]]]:
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(open_npz(self._path))
                rows = [self._row(header) for header in file.headers]
                origin = f"a sample of {self._path.name}"
                require_shapes({row.name: row for row, _ in rows}, self._signature, origin=origin)
                columns = self._columns(file, rows, stack)
                for _ in range(columns[0].samples if columns else 0):
                    yield {column.row.name: column.next() for column in columns}
            except FileNotFoundError as error:
                raise self._bad("no such file") from error
            except UNREADABLE as error:
                raise self._bad(" ".join(str(error).split())[:300] or type(error).__name__) from error

    def _columns(self, file: Npz, rows: Sequence[tuple[Header, int]], stack: contextlib.ExitStack) -> list[_Column]:
        counts = {row.name: samples for row, samples in rows}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{name} {samples}" for name, samples in counts.items())
            raise ValueError(f"the arrays hold different numbers of samples: {listed}")
        require_memory(tuple(row for row, _ in rows))
        return [_Column(row, stack.enter_context(file.stream(row.name)), samples) for row, samples in rows]

    def _row(self, header: Header) -> tuple[Header, int]:
        """What one sample of the array is, and how many there are."""
        name, shape = header.name, header.shape
        if header.fortran and len(shape) > 1:
            raise ValueError(f"array {name} is stored in Fortran order; save numpy.ascontiguousarray(array)")
        if not shape:
            raise ValueError(f"array {name} has no sample axis")
        declared = next((spec.shape for spec in self._signature if spec.name == name), None)
        if declared is None or len(shape) != len(declared):
            row, samples = shape[1:], shape[0]
        else:
            batch = declared[0] if declared and isinstance(declared[0], int) else 1
            if not batch or shape[0] % batch:
                raise ValueError(f"array {name} has {shape[0]} rows, which is no multiple of the batch of {batch}")
            row, samples = (batch, *shape[1:]), shape[0] // batch
        return Header(name, header.dtype, row, header.fortran), samples

    def _bad(self, cause: str) -> InputError:
        return InputError(
            f"{self._path.name} cannot be used for calibration",
            cause=cause,
            fix="Write it with numpy.savez(path, name=array, ...): one array per input, samples along axis 0.",
        )
