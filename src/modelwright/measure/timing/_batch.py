"""How many items a run takes: what the names of the dimensions say, and the axis in front where that is plain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from modelwright._dataclass import dataclass

_SPELT_OUT = re.compile(r"batch", re.IGNORECASE)
_LETTER = re.compile(r"[nb]", re.IGNORECASE)
# What exporters write where nobody named a dimension (`unk__66`, `s6`, `?`, `p2o.DynamicDimension.0`).
_UNNAMED = re.compile(r"[\W\d]*|unk.*|.*dynamic_?(dim|ax).*|[sdu]\d+|(dim|axis)_?\d+", re.IGNORECASE)
# Of three axes, time (recurrent layers) or the rows of a picture come first as often as a batch does.
_UNCLEAR_RANK = 3
_DISAGREE = "the inputs do not agree on a batch"


@dataclass(frozen=True)
class Axes:
    """An input: its dimensions as the graph declares them, and as they are fed."""

    name: str
    declared: tuple[int | str | None, ...]
    used: tuple[int, ...]


@dataclass(frozen=True)
class Batch:
    """`size` is None where nothing says it; `reason` tells why."""

    size: int | None
    reason: str | None = None


def batch_of(inputs: Sequence[Axes], asked: int | None) -> Batch:
    """`asked` is the batch that the user wanted in front."""
    named = _spelt_out(inputs) or _letters(inputs)
    return _agreed(named) if named else _in_front([one for one in inputs if len(one.used) > 1], asked)


def _spelt_out(inputs: Sequence[Axes]) -> set[int]:
    sizes = (zip(one.declared, one.used, strict=False) for one in inputs)
    return {size for pairs in sizes for dim, size in pairs if isinstance(dim, str) and _SPELT_OUT.search(dim)}


def _letters(inputs: Sequence[Axes]) -> set[int]:
    """Alone or behind another axis, N is as often a length."""
    return {one.used[0] for one in inputs if len(one.used) > 1 and _LETTER.fullmatch(_front(one) or "")}


def _in_front(inputs: Sequence[Axes], asked: int | None) -> Batch:
    if not inputs:
        return Batch(None, "no input has more than one axis")
    other = next((one for one in inputs if _front(one) is not None), None)
    if other is not None:
        return Batch(None, f"the first axis of {other.name} is {_front(other)}")
    found = _agreed({one.used[0] for one in inputs})
    clear = found.size in (None, 1, asked) or any(len(one.used) != _UNCLEAR_RANK for one in inputs)
    return found if clear else Batch(None, f"nothing says what the first axis of {inputs[0].name} is")


def _front(one: Axes) -> str | None:
    """What somebody called the first axis."""
    first = one.declared[0] if one.declared else None
    return first if isinstance(first, str) and not _UNNAMED.fullmatch(first) else None


def _agreed(sizes: Iterable[int]) -> Batch:
    found = set(sizes)
    return Batch(found.pop()) if len(found) == 1 else Batch(None, _DISAGREE)
