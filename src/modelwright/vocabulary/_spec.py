"""What a model wants to be fed: names, types, shapes, and how to make up realistic values."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from modelwright._dataclass import dataclass

FillKind = Literal[
    "tokens", "integers", "ones", "zeros", "arange", "normal", "uniform", "boxes", "indexed_patches", "given"
]


@dataclass(frozen=True)
class Fill:
    """How to make values. Ranges are half-open: `low` can appear, `high` cannot.

    - tokens: integers in the range, never one of `avoid`; where given, a row begins with `values` and ends in `last`
    - integers, uniform: the range; normal: mean 0, deviation 1; ones, zeros, arange: as named
    - boxes: x0 <= x1 and y0 <= y1 in the last axis, integers in the range
    - indexed_patches: rows of floats whose first two numbers are a row and a column from 1 up to below `high`
    - given: `values`, in every sample
    """

    kind: FillKind
    low: float = 0
    high: float = 1
    avoid: tuple[int, ...] = ()
    last: int | None = None
    values: tuple[int, ...] = ()


@dataclass(frozen=True)
class TensorSpec:
    """One input. `shape` is declared (a string is a symbolic dimension); `sizes` is what gets generated."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    sizes: tuple[int, ...]
    fill: Fill = field(default_factory=lambda: Fill("normal"))


InputSpec = tuple[TensorSpec, ...]


def static(name: str, dtype: str, shape: tuple[int, ...], fill: Fill) -> TensorSpec:
    """An input without symbolic dimensions."""
    return TensorSpec(name, dtype, shape, shape, fill)
