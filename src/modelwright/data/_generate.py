"""Seeded values for input specs. Sample `i` is the same however many samples are drawn, in whatever order."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.models import NoGuessError
from modelwright.vocabulary import Fill, TensorSpec
from modelwright.worker import memory_ceiling

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

_WIDEST = 8
_DTYPES = (
    *("float16", "float32", "float64", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    "string",
)


def generate(specs: Iterable[TensorSpec], seed: int = 0, index: int = 0) -> dict[str, NDArray[Any]]:
    """Sample number `index` for these inputs. No global random state is read or changed."""
    specs = tuple(specs)
    _refuse_huge(specs)
    return {spec.name: _tensor(spec, seed, index) for spec in specs}


def made_up_bytes(specs: Iterable[TensorSpec]) -> int:
    """What a sample of them takes while it is made."""
    return sum(_WIDEST * math.prod(spec.sizes) for spec in specs)


def _refuse_huge(specs: Sequence[TensorSpec]) -> None:
    """Values are made up where no child has a limit: a shape in a small file may ask for all there is."""
    needed, allowed = made_up_bytes(specs), memory_ceiling()
    if needed > allowed:
        largest = max(specs, key=lambda spec: math.prod(spec.sizes))
        raise InputError(
            f"input {largest.name} is too large to be made up",
            cause=f"{list(largest.sizes)} needs {needed / 1e6:,.0f} MB, and {allowed / 1e6:,.0f} MB are allowed",
            fix="Give smaller sizes with `dims`, or allow more with `memory`.",
        )


def _tensor(spec: TensorSpec, seed: int, index: int) -> NDArray[Any]:
    if spec.dtype not in _DTYPES:
        raise NoGuessError(
            f"no values can be made up for input {spec.name}",
            cause=f"its type is {spec.dtype}",
            fix="Give the inputs as an .npz file.",
        )
    rng = np.random.default_rng([seed, index, zlib.crc32(spec.name.encode())])
    if spec.dtype == "string":
        return _texts(rng, spec.sizes)
    values = _MAKERS[spec.fill.kind](rng, spec.fill, spec.sizes)
    return np.ascontiguousarray(values.astype(spec.dtype)).reshape(spec.sizes)


def _texts(rng: Generator, sizes: tuple[int, ...]) -> NDArray[Any]:
    """Digits: texts that are numbers as well. As objects, which is how onnxruntime takes texts."""
    return np.asarray(rng.integers(0, 10, size=sizes)).astype(str).astype(object)


def _tokens(rng: Generator, fill: Fill, sizes: tuple[int, ...]) -> NDArray[Any]:
    low, high = int(fill.low), int(fill.high)
    banned = sorted({token for token in (*fill.avoid, fill.last) if token is not None and low <= token < high})
    if high - low <= len(banned):
        raise InputError(
            "no token ids are left to draw from",
            cause=f"the range [{low}, {high}) holds only special tokens",
            fix="Check the vocabulary size in the model's configuration, or give the inputs as an .npz file.",
        )
    ids = rng.integers(low, high - len(banned), size=sizes)
    for token in banned:
        ids += ids >= token
    if fill.values:
        ids[..., : len(fill.values)] = fill.values
    if fill.last is not None and sizes and sizes[-1]:
        ids[..., -1] = fill.last
    return ids


def _integers(rng: Generator, fill: Fill, sizes: tuple[int, ...]) -> NDArray[Any]:
    return rng.integers(int(fill.low), int(fill.high), size=sizes)


def _arange(_: Generator, fill: Fill, sizes: tuple[int, ...]) -> NDArray[Any]:
    row = np.arange(sizes[-1] if sizes else 1) + int(fill.low)
    return np.broadcast_to(row, sizes or (1,))


def _uniform(rng: Generator, fill: Fill, sizes: tuple[int, ...]) -> NDArray[Any]:
    return rng.uniform(fill.low, fill.high, size=sizes)


def _boxes(rng: Generator, fill: Fill, sizes: tuple[int, ...]) -> NDArray[Any]:
    corners = rng.integers(int(fill.low), int(fill.high), size=(*sizes[:-1], 2, 2))
    return np.sort(corners, axis=-2).reshape(sizes)


def _indexed_patches(rng: Generator, fill: Fill, sizes: tuple[int, ...]) -> NDArray[Any]:
    """A grid of patches, read row by row, as the Pix2Struct processor lays them out."""
    patches = rng.standard_normal(sizes)
    count, most = sizes[-2], int(fill.high) - 1
    columns = max(1, min(most, int(count**0.5)))
    place = np.arange(count)
    patches[..., 0] = np.minimum(place // columns + 1, most)
    patches[..., 1] = place % columns + 1
    return patches


def _ones(_: Generator, __: Fill, sizes: tuple[int, ...]) -> NDArray[Any]:
    return np.ones(sizes)


def _zeros(_: Generator, __: Fill, sizes: tuple[int, ...]) -> NDArray[Any]:
    return np.zeros(sizes)


def _given(_: Generator, fill: Fill, sizes: tuple[int, ...]) -> NDArray[Any]:
    return np.broadcast_to(np.asarray(fill.values), sizes)


def _normal(rng: Generator, _: Fill, sizes: tuple[int, ...]) -> NDArray[Any]:
    return rng.standard_normal(sizes)


_MAKERS: Mapping[str, Callable[[Generator, Fill, tuple[int, ...]], NDArray[Any]]] = {
    "tokens": _tokens,
    "integers": _integers,
    "ones": _ones,
    "zeros": _zeros,
    "arange": _arange,
    "normal": _normal,
    "uniform": _uniform,
    "boxes": _boxes,
    "indexed_patches": _indexed_patches,
    "given": _given,
}
