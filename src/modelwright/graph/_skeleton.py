"""A model's protobuf without its large inline weights, and where in the file those weights are.

Parsing a `.onnx` file copies every weight twice before anything can be said about the graph. This walks the
wire format instead (tag, length, skip), keeps everything but the `raw_data` of large initializers, and leaves
those on disk, as if they were external.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from modelwright._dataclass import dataclass

LARGE = 1 << 16
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MODEL_GRAPH, _GRAPH_INITIALIZER, _TENSOR_RAW = 7, 5, 9


@dataclass(frozen=True)
class ByteRange:
    """A range of the file."""

    offset: int
    length: int


@dataclass(frozen=True)
class Skeleton:
    """`data` parses as the model; `left_out` maps the index of an initializer to its bytes in the file."""

    data: bytes
    left_out: dict[int, ByteRange]


def skeleton(data: memoryview) -> Skeleton | None:
    """Split a serialized ModelProto; None when it cannot be walked: then the parser says why."""
    try:
        return _split(data) if _may_hold_large(data) else Skeleton(bytes(data), {})
    except _NotRegular:
        return None


class _NotRegular(Exception):
    """Not protobuf, or cut short."""


def _may_hold_large(data: memoryview) -> bool:
    """False: no initializer is that large, and there is nothing to leave out."""
    graphs = [item for item in _fields(data, 0, len(data)) if item.number == _MODEL_GRAPH]
    return any(item.wire != _BYTES or _graph_may(data, item.body, item.end) for item in graphs)


def _graph_may(data: memoryview, position: int, end: int) -> bool:
    """A loop of its own, because a graph has ten thousands of fields; what is unusual is for `_fields` to judge."""
    initializer = _GRAPH_INITIALIZER << 3 | _BYTES
    while position + 1 < end:
        tag, length = data[position], data[position + 1]
        position += 2
        if tag & 0x87 != _BYTES:
            return True
        if length > 0x7F:
            length, position = _readvarint(data, position - 1, end)
            if tag == initializer and length >= LARGE:
                return True
        position += length
    return position != end


def _split(data: memoryview) -> Skeleton:
    left_out: dict[int, ByteRange] = {}
    count = 0
    model = _Output()
    for field in _fields(data, 0, len(data)):
        if field.number != _MODEL_GRAPH or field.wire != _BYTES:
            model.keep(data[field.start : field.end])
            continue
        graph = _Output()
        for inner in _fields(data, field.body, field.end):
            if inner.number != _GRAPH_INITIALIZER or inner.wire != _BYTES:
                graph.keep(data[inner.start : inner.end])
                continue
            if inner.end - inner.body < LARGE:
                graph.keep(data[inner.start : inner.end])
            else:
                span = _tensor(data, inner, graph)
                left_out |= {count: span} if span else {}
            count += 1
        model.message(_MODEL_GRAPH, graph)
    return Skeleton(model.join(), left_out)


class _Field(NamedTuple):
    """One field: its tag begins at `start`, its content at `body`."""

    number: int
    wire: int
    start: int
    body: int
    end: int


class _Output:
    def __init__(self) -> None:
        self._parts: list[memoryview | bytes] = []

    def keep(self, part: memoryview | bytes) -> None:
        self._parts.append(part)

    def message(self, number: int, content: _Output) -> None:
        data = content.join()
        self._parts += [varint(number << 3 | _BYTES), varint(len(data)), data]

    def join(self) -> bytes:
        return b"".join(self._parts)


def _tensor(data: memoryview, tensor: _Field, graph: _Output) -> ByteRange | None:
    """Copy a TensorProto without a large raw_data. As in protobuf, the last one counts."""
    kept = _Output()
    raw: _Field | None = None
    for field in _fields(data, tensor.body, tensor.end):
        if field.number == _TENSOR_RAW and field.wire == _BYTES:
            raw = field
        else:
            kept.keep(data[field.start : field.end])
    if raw is not None and raw.end - raw.body < LARGE:
        kept.keep(data[raw.start : raw.end])
        raw = None
    graph.message(_GRAPH_INITIALIZER, kept)
    return ByteRange(raw.body, raw.end - raw.body) if raw else None


def _fields(data: memoryview, position: int, end: int) -> Iterator[_Field]:
    while position < end:
        start, tag = position, data[position]
        # Numbers of one byte, which most are, without a call.
        tag, position = (tag, position + 1) if tag < 0x80 else _readvarint(data, position, end)
        wire = tag & 7
        body = position
        if wire == _BYTES:
            length, body = _readvarint(data, position, end)
            position = body + length
        elif wire == _VARINT:
            _, position = _readvarint(data, position, end)
        elif wire in (_FIXED32, _FIXED64):
            position += 4 if wire == _FIXED32 else 8
        else:
            raise _NotRegular
        if position > end or not tag >> 3:
            raise _NotRegular
        yield _Field(tag >> 3, wire, start, body, position)


def _readvarint(data: memoryview, position: int, end: int) -> tuple[int, int]:
    result = shift = 0
    while position < end and shift < 70:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
    raise _NotRegular


def varint(number: int) -> bytes:
    """A number as protobuf writes lengths."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
