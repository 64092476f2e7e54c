"""The one JSON contract: strict, sorted where it is hashed, UTF-8."""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import json
import operator
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

_AS_IS = frozenset({str, int, float, bool, type(None)})
# Built once: large plans hash tens of thousands of small values.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """Dataclasses, enums, paths and tuples as plain JSON values."""
    kind: Any = type(value)
    return value if kind in _AS_IS else _form(kind)(value)


@functools.cache
def _form(kind: Any) -> Callable[[Any], Any]:
    """How values of a type are put."""
    if issubclass(kind, enum.Enum):
        return operator.attrgetter("value")
    if issubclass(kind, bool | int | float | str):
        return lambda value: value
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
        return lambda value: {name: plain(getattr(value, name)) for name in names}
    if issubclass(kind, dict):
        return lambda value: {_key(key): plain(item) for key, item in value.items()}
    if issubclass(kind, list | tuple):
        return lambda value: [plain(item) for item in value]
    if issubclass(kind, set | frozenset):
        return lambda value: sorted(plain(item) for item in value)
    if issubclass(kind, PurePath):
        return str
    raise TypeError(f"{kind.__name__} has no JSON form")


def loads(text: str | bytes) -> Any:
    """What a JSON text says; whatever is wrong with it is a ValueError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def dumps(value: Any, *, ascii_only: bool = False) -> str:
    """Readable JSON; NaN and Infinity are errors, because unknown is null."""
    return json.dumps(plain(value), indent=2, ensure_ascii=ascii_only, allow_nan=False)


def canonical(value: Any) -> bytes:
    """One byte string per value: sorted keys, no white space. This is what gets hashed."""
    return _CANONICAL.encode(plain(value)).encode()


def digest(value: Any) -> str:
    """SHA-256 (hex) of the canonical form."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _key(key: Any) -> str:
    if type(key) is str:
        return key
    if isinstance(key, enum.Enum):
        key = key.value
    if not isinstance(key, str):
        raise TypeError(f"JSON object keys are strings, not {type(key).__name__}")
    return key
