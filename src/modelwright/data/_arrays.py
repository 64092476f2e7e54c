"""Rows out of array files: an `.npz` cut along its first axis and never held whole, an `.npy`, a folder of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data._npz import UNREADABLE, Header, Npz, native, open_npz, read_npy, require_memory
from modelwright.data._rows import UNNAMED, Row, Rows, by_number
from modelwright.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

SHARED, NAMES = "shared.", "label_names"
_PLAIN = "Write it with numpy.savez(path, name=array, label=labels), samples along axis 0."


def npz_rows(path: Path) -> Rows:
    """One array per field, samples along axis 0. `shared.NAME` belongs to all samples, `label_names` to the classes."""
    with _readable(path), open_npz(path) as file:
        apart = [header for header in file.headers if header.name.startswith(SHARED) or header.name == NAMES]
        require_memory(tuple(apart))
        held = {header.name: file.read(header.name) for header in apart}
        columns = [header for header in file.headers if header.name not in held]
    count = _count(path, columns)
    heads = {header.name: replace(header, shape=header.shape[1:]) for header in columns}
    shared = {name.removeprefix(SHARED): array for name, array in held.items() if name != NAMES}
    names = tuple(str(name) for name in held.get(NAMES, ()))
    return Rows("npz", count, lambda numbers: _stream(path, columns, count, numbers), names, shared, heads)


def npy_rows(path: Path) -> Rows:
    """The one input of the model, samples along axis 0."""
    with _readable(path):
        array = read_npy(path)
    if not array.ndim:
        raise _unfit(path, "it has no sample axis")
    return by_number("npy", len(array), lambda index: {UNNAMED: array[index]})


def files_rows(files: Sequence[Path]) -> Rows:
    """A sample in each file, in the order of their names."""
    return by_number("folder", len(files), lambda index: _whole(files[index]))


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an .npz file, whatever they are. Pickled objects are never loaded."""
    with _readable(path), open_npz(path) as file:
        require_memory(file.headers)
        return {header.name: file.read(header.name) for header in file.headers}


def read_array(path: Path) -> NDArray[Any]:
    """The array of an .npy file."""
    with _readable(path):
        return read_npy(path)


def _whole(path: Path) -> Row:
    if path.suffix == ".npy":
        return {UNNAMED: read_array(path)}
    return {name: _scalar(array) for name, array in read_npz(path).items()}


def _count(path: Path, columns: Sequence[Header]) -> int:
    sizes = {header.name: header.shape[0] if header.shape else None for header in columns}
    if len(set(sizes.values())) > 1 or None in sizes.values():
        raise InputError(
            f"the arrays of {path.name} hold different numbers of samples",
            cause=", ".join(f"{name} {'none' if size is None else size}" for name, size in sizes.items()),
            fix=f"Every array has the samples along axis 0; one that all samples share is called {SHARED}NAME.",
        )
    return next((size for size in sizes.values() if size is not None), 0)


@dataclass
class _Column:
    """One array of the archive, read row by row; one in Fortran order is held whole."""

    header: Header
    stream: IO[bytes] | None
    whole: NDArray[Any] | None = None
    at: int = 0

    def __post_init__(self) -> None:
        self._shape = self.header.shape[1:]
        self._wanted = replace(self.header, shape=self._shape).size_bytes

    def row(self, number: int) -> Any:
        if self.whole is not None:
            return _scalar(self.whole[number])
        assert self.stream is not None
        wanted = self._wanted
        if number != self.at:
            self.stream.seek((number - self.at) * wanted, 1)
        data = self.stream.read(wanted)
        if len(data) != wanted:
            raise EOFError(f"array {self.header.name} ends early")
        self.at = number + 1
        return _scalar(native(np.frombuffer(data, self.header.dtype).reshape(self._shape)))


def _stream(path: Path, columns: Sequence[Header], count: int, numbers: Sequence[int] | None) -> Iterator[Row]:
    with contextlib.ExitStack() as stack:
        stack.enter_context(_readable(path))
        file = stack.enter_context(open_npz(path))
        require_memory(tuple(replace(header, shape=header.shape[1:]) for header in columns))
        opened = [_opened(file, header, stack) for header in columns]
        for number in range(count) if numbers is None else numbers:
            yield {column.header.name: column.row(number) for column in opened}


def _opened(file: Npz, header: Header, stack: contextlib.ExitStack) -> _Column:
    if header.fortran and len(header.shape) > 1:
        require_memory((header,))
        return _Column(header, None, np.ascontiguousarray(file.read(header.name)))
    return _Column(header, stack.enter_context(file.stream(header.name)))


def _scalar(value: Any) -> Any:
    """A text as a text; a number keeps its type."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    return str(value) if isinstance(value, np.str_) else value


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist", cause="no such file", fix="Check the path.") from error
    except UNREADABLE as error:
        raise _unfit(path, " ".join(str(error).split())[:300] or type(error).__name__) from error


def _unfit(path: Path, cause: str) -> InputError:
    if path.suffix == ".npy":
        return InputError(f"{path.name} is not an array", cause=cause, fix="Write it with numpy.save(path, array).")
    return InputError(f"{path.name} is not an .npz file of plain arrays", cause=cause, fix=_PLAIN)
