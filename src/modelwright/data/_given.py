"""Inputs that a user brings, checked against what the model declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright.data._npz import UNREADABLE, Header, open_npz, read_npy, require_memory
from modelwright.errors import InputError, did_you_mean
from modelwright.graph import ValueSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PLAIN = "Write it with numpy.savez(path, name=array, ...), one array per model input."


def load_npz(path: str | Path, signature: Sequence[ValueSpec]) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file, one per model input. What does not fit is said before it is unpacked."""
    return _read(Path(path), _PLAIN, lambda headers: check_inputs(headers, signature, origin=Path(path).name))


def read_npz(path: str | Path, fix: str = _PLAIN) -> dict[str, NDArray[Any]]:
    """All arrays of an .npz file, whatever they are. Pickled objects are never loaded."""
    return _read(Path(path), fix, lambda _: None)


def read_array(path: Path) -> NDArray[Any]:
    """The array of an .npy file."""
    try:
        return read_npy(path)
    except UNREADABLE as error:
        raise _not_plain(path, "array", error, "Write it with numpy.save(path, array).") from error


def read_row(path: Path, signature: Sequence[ValueSpec]) -> dict[str, NDArray[Any]]:
    """All arrays of an .npz file that may hold more than the model's inputs, or those in another type."""
    return _read(path, _PLAIN, lambda headers: require_shapes(headers, signature, origin=path.name))


def require_shapes(headers: Mapping[str, Header], signature: Sequence[ValueSpec], *, origin: str) -> None:
    """Raise when the shape of an input does not fit. Other arrays, and types, are the business of who reads them."""
    wrong = []
    for spec in signature:
        if spec.name in headers:
            wrong += _mismatch(headers[spec.name], ValueSpec(spec.name, None, spec.shape), {})
    if wrong:
        raise _unfit(origin, wrong, signature)


def _read(path: Path, fix: str, check: Callable[[Mapping[str, Header]], None]) -> dict[str, NDArray[Any]]:
    try:
        with open_npz(path) as file:
            check({header.name: header for header in file.headers})
            require_memory(file.headers)
            return {header.name: file.read(header.name) for header in file.headers}
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist", cause="no such file", fix="Check the path.") from error
    except UNREADABLE as error:
        raise _not_plain(path, ".npz file of plain arrays", error, fix) from error


def _not_plain(path: Path, what: str, error: Exception, fix: str) -> InputError:
    cause = " ".join(str(error).split())[:300] or type(error).__name__
    return InputError(f"{path.name} is not an {what}", cause=cause, fix=fix)


def check_inputs(
    arrays: Mapping[str, NDArray[Any]] | Mapping[str, Header],
    signature: Sequence[ValueSpec],
    *,
    origin: str = "the given inputs",
) -> None:
    """Raise when a name, type or shape does not fit; the message lists everything that is wrong."""
    declared = {spec.name: spec for spec in signature}
    wrong = [f"{name} is missing" for name in declared if name not in arrays]
    wrong += [f"{name} is not an input{_hint(name, declared)}" for name in arrays if name not in declared]
    bound: dict[str, tuple[int, str]] = {}
    for name, spec in declared.items():
        if name in arrays:
            wrong += _mismatch(arrays[name], spec, bound)
    if wrong:
        raise _unfit(origin, wrong, signature)


def _unfit(origin: str, wrong: Sequence[str], signature: Sequence[ValueSpec]) -> InputError:
    return InputError(
        f"{origin} does not fit the model", cause="; ".join(wrong), fix=f"The model takes {_listing(signature)}."
    )


def _mismatch(array: NDArray[Any] | Header, spec: ValueSpec, bound: dict[str, tuple[int, str]]) -> list[str]:
    wrong = []
    if spec.dtype is not None and array.dtype.name != spec.dtype:
        wrong.append(f"{spec.name} is {array.dtype.name}, not {spec.dtype}")
    if spec.shape is None:
        return wrong
    if len(array.shape) != len(spec.shape):
        return [*wrong, f"{spec.name} has {len(array.shape)} dimensions, not {len(spec.shape)}"]
    for axis, (size, dim) in enumerate(zip(array.shape, spec.shape, strict=True)):
        if isinstance(dim, int) and size != dim:
            wrong.append(f"{spec.name} has {size} in dimension {axis}, not {dim}")
        if isinstance(dim, str):
            first, owner = bound.setdefault(dim, (size, spec.name))
            if first != size:
                wrong.append(f"{dim} is {first} in {owner} but {size} in {spec.name}")
    return wrong


def _hint(name: str, declared: Mapping[str, ValueSpec]) -> str:
    hint = did_you_mean(name, declared)
    return f" ({hint})" if hint else ""


def _listing(signature: Sequence[ValueSpec]) -> str:
    return ", ".join(f"{spec.name}: {spec.dtype}{_shape(spec)}" for spec in signature)


def _shape(spec: ValueSpec) -> str:
    if spec.shape is None:
        return ""
    return "[" + ", ".join("?" if dim is None else str(dim) for dim in spec.shape) + "]"
