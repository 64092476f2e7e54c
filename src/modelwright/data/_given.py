"""Inputs that a user brings, checked against what the model declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from modelwright.data._feeds import TakenInput
from modelwright.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray


def check_inputs(
    arrays: Mapping[str, NDArray[Any]],
    signature: Sequence[TakenInput],
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
        raise unfit(origin, wrong, signature)


def unfit(origin: str, wrong: Sequence[str], signature: Sequence[TakenInput]) -> InputError:
    return InputError(
        f"{origin} does not fit the model", cause="; ".join(wrong), fix=f"The model takes {_listing(signature)}."
    )


def _mismatch(array: NDArray[Any], spec: TakenInput, bound: dict[str, tuple[int, str]]) -> list[str]:
    wrong = []
    if spec.dtype not in (None, _kind(array)):
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


def _kind(array: NDArray[Any]) -> str:
    """In the words of a signature; numpy keeps texts as objects, or as characters of a fixed width."""
    return "string" if array.dtype.kind in "OU" else array.dtype.name


def _hint(name: str, declared: Mapping[str, TakenInput]) -> str:
    hint = did_you_mean(name, declared)
    return f" ({hint})" if hint else ""


def _listing(signature: Sequence[TakenInput]) -> str:
    return ", ".join(f"{spec.name}: {spec.dtype}{_shape(spec)}" for spec in signature)


def _shape(spec: TakenInput) -> str:
    if spec.shape is None:
        return ""
    return "[" + ", ".join("?" if dim is None else str(dim) for dim in spec.shape) + "]"
