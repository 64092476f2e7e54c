"""The one JSON contract: strict, sorted where it is hashed, UTF-8."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
from pathlib import PurePath
from typing import Any

_AS_IS = frozenset({str, int, float, bool, type(None)})


def plain(value: Any) -> Any:
    """Dataclasses, enums, paths and tuples as plain JSON values."""
    if type(value) in _AS_IS:
        return value
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, bool | int | float | str):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(plain(item) for item in value)
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


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
    text = json.dumps(plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def digest(value: Any) -> str:
    """SHA-256 (hex) of the canonical form."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _key(key: Any) -> str:
    if isinstance(key, enum.Enum):
        key = key.value
    if not isinstance(key, str):
        raise TypeError(f"JSON object keys are strings, not {type(key).__name__}")
    return key
