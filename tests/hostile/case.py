"""A hostile thing under a name, and how the commands must end when they meet it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import pytest

FINE, NO, USAGE, BAD = 0, 1, 2, 3


@dataclass(frozen=True)
class Case:
    """`make` writes it into an empty folder and gives the path a user would type."""

    name: str
    make: Callable[[Path], Path]
    code: int
    build: int | None = None
    """How `wright build` must end; None where it is not tried."""


def file(name: str, content: Callable[[], bytes] | bytes, code: int = BAD, build: int | None = None) -> Case:
    """A case that is one file."""

    def make(folder: Path) -> Path:
        path = folder / "model.onnx"
        path.write_bytes(content if isinstance(content, bytes) else content())
        return path

    return Case(name, make, code, build)


def field(number: int, content: bytes) -> bytes:
    """A protobuf field as the wire has it, for what protobuf's own classes refuse to make."""
    size, length = len(content), bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | 2]) + bytes(length) + bytes([size]) + content


def model(name: str, proto: Callable[[], onnx.ModelProto], code: int = BAD, build: int | None = None) -> Case:
    """A case that is one ONNX file, valid as protobuf."""
    return file(name, lambda: proto().SerializeToString(), code, build)


def thinned(cases: Sequence[Any], keep: int) -> list[Any]:
    """All of them for `make proof`; `keep` of them, spread evenly, for `make test`."""
    kept = {index * len(cases) // keep for index in range(keep)}
    return [
        pytest.param(case, id=case.name, marks=() if index in kept else pytest.mark.proof)
        for index, case in enumerate(cases)
    ]
