"""A graph whose external data lies elsewhere than beside it: the same graph with other locations."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy_messages
from modelwright.graph._bodies import bodies
from modelwright.graph._external import is_external
from modelwright.graph._write import GRAPH_BYTES

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy_messages()


def data_places(model: Path) -> frozenset[str]:
    """The files that the graph keeps weights in, as it names them; none for a graph that is too large to say."""
    if model.stat().st_size > 2 * GRAPH_BYTES:
        return frozenset()
    return frozenset(map(_location, _entries(_parsed(model))))


def with_data_at(model: Path, places: Mapping[str, str]) -> bytes:
    """The graph, its files by other names."""
    proto = _parsed(model)
    for entry in _entries(proto):
        entry.value = places.get(_location(entry), entry.value)
    moved: bytes = proto.SerializeToString(deterministic=True)
    return moved


def _parsed(model: Path) -> onnx.ModelProto:
    parsed: onnx.ModelProto = onnx.ModelProto.FromString(model.read_bytes())
    return parsed


def _entries(proto: onnx.ModelProto) -> Iterator[onnx.StringStringEntryProto]:
    for body in bodies(proto):
        for tensor in filter(is_external, body.tensors()):
            yield from (entry for entry in tensor.external_data if entry.key == "location")


def _location(entry: onnx.StringStringEntryProto) -> str:
    return posixpath.normpath(entry.value.replace("\\", "/"))
