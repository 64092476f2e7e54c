"""Inputs that a user brings, checked against what the model declares."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import InputError, did_you_mean
from modelwright.graph import ValueSpec
from modelwright.sources._digest import require_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")


_PLAIN = "Write it with numpy.savez(path, name=array, ...), one array per model input."


def load_npz(path: str | Path, signature: Sequence[ValueSpec]) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file, one per model input."""
    arrays = read_npz(path)
    check_inputs(arrays, signature, origin=Path(path).name)
    return arrays


def read_npz(path: str | Path, fix: str = _PLAIN) -> dict[str, NDArray[Any]]:
    """All arrays of an .npz file, whatever they are. Pickled objects are never loaded."""
    path = Path(path)
    require_file(path)
    try:
        # numpy leaves a file open that it cannot read, so it gets an open one
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist", cause="no such file", fix="Check the path.") from error
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise InputError(
            f"{path.name} is not an .npz file of plain arrays",
            cause=str(error) or type(error).__name__,
            fix=fix,
        ) from error


def check_inputs(
    arrays: Mapping[str, NDArray[Any]], signature: Sequence[ValueSpec], *, origin: str = "the given inputs"
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
        raise InputError(
            f"{origin} does not fit the model", cause="; ".join(wrong), fix=f"The model takes {_listing(signature)}."
        )


def _mismatch(array: NDArray[Any], spec: ValueSpec, bound: dict[str, tuple[int, str]]) -> list[str]:
    wrong = []
    if spec.dtype is not None and array.dtype.name != spec.dtype:
        wrong.append(f"{spec.name} is {array.dtype.name}, not {spec.dtype}")
    if spec.shape is None:
        return wrong
    if array.ndim != len(spec.shape):
        return [*wrong, f"{spec.name} has {array.ndim} dimensions, not {len(spec.shape)}"]
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
