"""Large weights in a scratch file instead of in memory, while nothing needs their values."""

from __future__ import annotations

import functools
from collections.abc import Container, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.graph import Graph, StreamedWeight, external_data, is_external, mapped, stored_bytes

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

SCRATCH = "weights.scratch"
_LARGE = 4096
_ALIGN = 4096
_COPY = 1 << 24


@dataclass(frozen=True)
class Region:
    """The bytes of one tensor in a file."""

    path: Path
    offset: int
    length: int

    def chunks(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            file.seek(self.offset)
            left = self.length
            while left:
                chunk = file.read(min(left, _COPY))
                if not chunk:
                    raise InputError(
                        f"{self.path.name} is cut short",
                        cause=f"{left:,} bytes of a weight are missing",
                        fix="Copy the model again together with all its data files.",
                    )
                yield chunk
                left -= len(chunk)

    def read(self) -> bytes:
        return b"".join(self.chunks())


@dataclass(frozen=True)
class Detached:
    """The scratch file of a model whose large initializers point into it."""

    places: dict[str, Region]

    def read(self, model: onnx.ModelProto, name: str) -> NDArray[Any]:
        """The values of one initializer, wherever they are."""
        tensor = _named(model, name)
        if not is_external(tensor):
            return onnx.numpy_helper.to_array(tensor)
        inline = onnx.TensorProto()
        inline.CopyFrom(tensor)
        _inline(inline, self.places[name].read())
        return onnx.numpy_helper.to_array(inline)

    def replace(self, model: onnx.ModelProto, name: str, values: NDArray[Any]) -> None:
        """Other values of the same type and shape."""
        tensor = _named(model, name)
        if is_external(tensor):
            place = self.places[name]
            with place.path.open("r+b") as file:
                file.seek(place.offset)
                file.write(np.ascontiguousarray(values).tobytes())
        else:
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))

    def attach(self, model: onnx.ModelProto) -> None:
        """Put the bytes back into the model, which then needs no file. A weight that is NaN is refused."""
        for tensor in model.graph.initializer:
            if is_external(tensor):
                _inline(tensor, self.places[tensor.name].read())
            refuse_nan(tensor)


def refuse_nan(tensor: onnx.TensorProto) -> None:
    if tensor.data_type == onnx.TensorProto.FLOAT and np.isnan(onnx.numpy_helper.to_array(tensor)).any():
        raise broken(tensor.name)


def broken(name: str) -> InputError:
    return InputError(
        f"weight {name} holds NaN",
        cause="the model was saved broken, or its training diverged",
        fix="Export the model again from good weights.",
    )


def stream(model: onnx.ModelProto, outside: dict[str, Region], workdir: Path) -> dict[str, StreamedWeight]:
    """Leave them in their files, to be read when they are written. A file without content stands in for them, for
    sessions that are asked about the graph."""
    found: dict[str, StreamedWeight] = {}
    for tensor in model.graph.initializer:
        if (region := outside.get(tensor.name)) is not None:
            weight = mapped(region.path, region.offset, region.length, tensor)
            check = functools.partial(_whole, tensor.name) if tensor.data_type == onnx.TensorProto.FLOAT else None
            found[tensor.name] = replace(weight, change=check)
            leave_outside(tensor)
    with (workdir / SCRATCH).open("wb") as file:
        file.truncate(max((region.length for region in outside.values()), default=0))
    return found


def leave_outside(tensor: onnx.TensorProto) -> None:
    """Its bytes come later; until then it points at the stand-in."""
    _point(tensor, Region(Path(SCRATCH), 0, stored_bytes(tensor.data_type, tensor.dims) or 0))


def _whole(name: str, values: NDArray[Any]) -> NDArray[Any]:
    if np.isnan(values).any():
        raise broken(name)
    return values


def load_external(graph: Graph, *, everything: bool, wanted: Container[str] = ()) -> dict[str, Region]:
    """Read weights that are still on disk into the model; large ones of the main graph only when asked for.

    Returns where the ones that stayed on disk are, by initializer name.
    """
    left: dict[str, Region] = {}
    for tensor, region, main in _on_disk(graph):
        if main and region.length >= _LARGE and not everything and tensor.name not in wanted:
            left[tensor.name] = region
        else:
            _inline(tensor, region.read())
    return left


def detach(model: onnx.ModelProto, outside: dict[str, Region], workdir: Path) -> Detached:
    """Move every large initializer of the main graph to a scratch file in `workdir`."""
    places: dict[str, Region] = {}
    path = workdir / SCRATCH
    with path.open("wb") as file:
        for tensor in model.graph.initializer:
            region = outside.get(tensor.name)
            if region is None and _stored_size(tensor) < _LARGE:
                continue
            file.seek(-file.tell() % _ALIGN, 1)
            start = file.tell()
            _copy_out(tensor, region, file)
            places[tensor.name] = Region(path, start, file.tell() - start)
            _point(tensor, places[tensor.name])
    return Detached(places)


def _named(model: onnx.ModelProto, name: str) -> onnx.TensorProto:
    found: onnx.TensorProto = next(tensor for tensor in model.graph.initializer if tensor.name == name)
    return found


def _on_disk(graph: Graph) -> Iterator[tuple[onnx.TensorProto, Region, bool]]:
    """Every tensor without its bytes: where they are, and whether it is an initializer of the main graph."""
    main = graph.model.graph.initializer
    for index, span in graph.on_disk.items():
        yield main[index], Region(graph.path, span.offset, span.length), True
    inside = sum(is_external(tensor) for tensor in main)
    stored = [tensor for body in graph.bodies for tensor in body.tensors() if is_external(tensor)]
    # The first body is the main graph, and its initializers come first.
    for index, (place, tensor) in enumerate(zip(external_data(graph), stored, strict=True)):
        yield tensor, Region(place.path, place.offset, place.length), index < inside


def _stored_size(tensor: onnx.TensorProto) -> int:
    if tensor.data_type == onnx.TensorProto.STRING:
        return 0
    return len(tensor.raw_data) or tensor.ByteSize()


def _copy_out(tensor: onnx.TensorProto, region: Region | None, file: IO[bytes]) -> None:
    if region is None:
        file.write(tensor.raw_data or onnx.numpy_helper.to_array(tensor).tobytes())
        return
    for chunk in region.chunks():
        file.write(chunk)


def _point(tensor: onnx.TensorProto, place: Region) -> None:
    for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
        tensor.ClearField(field)
    del tensor.external_data[:]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    entries = (("location", SCRATCH), ("offset", str(place.offset)), ("length", str(place.length)))
    for key, value in entries:
        tensor.external_data.add(key=key, value=value)


def _inline(tensor: onnx.TensorProto, data: bytes) -> None:
    tensor.raw_data = data
    del tensor.external_data[:]
    tensor.ClearField("data_location")
