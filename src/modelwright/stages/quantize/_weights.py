"""Large weights in a scratch file instead of in memory, while nothing needs their values."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.graph import Graph, StreamedWeight, external_data, is_external, mapped, pieces, stored_bytes

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

SCRATCH = "weights.scratch"
# Smaller ones are in memory while a model is written.
KEPT = 1 << 16
_MATRIX = 2
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
    """The scratch file of a model whose large initializers point into it. Those of fewer bytes than `kept` come back
    into memory, as all vectors do, and new ones are made there."""

    path: Path
    kept: float = math.inf

    def to_write(self) -> Detached:
        """For a model that is only written: what is large stays in the file."""
        return replace(self, kept=KEPT)

    def read(self, model: onnx.ModelProto, name: str) -> NDArray[Any]:
        """A copy of the values of one initializer, wherever they are."""
        return np.array(self.values(_named(model, name)))

    def values(self, tensor: onnx.TensorProto) -> NDArray[Any]:
        """Those of an initializer, mapped where it is not in memory."""
        if not is_external(tensor):
            return onnx.numpy_helper.to_array(tensor)
        return np.asarray(self._mapped(tensor).values())

    def replace(self, model: onnx.ModelProto, name: str, values: NDArray[Any]) -> None:
        """Other values of the same type and shape."""
        tensor = _named(model, name)
        if is_external(tensor):
            with self.path.open("r+b") as file:
                file.seek(_place(tensor)[0])
                file.write(np.ascontiguousarray(values).tobytes())
        else:
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))

    def attach(self, model: onnx.ModelProto) -> None:
        """Put the bytes of what is kept back into the model. A weight that is NaN is refused."""
        for tensor in model.graph.initializer:
            if tensor.data_type == onnx.TensorProto.FLOAT:
                for piece in pieces(self.values(tensor)):
                    _whole(tensor.name, piece)
            if is_external(tensor) and (len(tensor.dims) < _MATRIX or _place(tensor)[1] < self.kept):
                _inline(tensor, Region(self.path, *_place(tensor)).read())

    def store(self, name: str, data_type: int, shape: Sequence[int], made: Iterable[NDArray[Any]]) -> onnx.TensorProto:
        """A new initializer, from its rows; in the scratch file where it is large."""
        tensor = onnx.TensorProto(name=name, data_type=data_type, dims=shape)
        if (stored_bytes(data_type, tensor.dims) or 0) < self.kept:
            tensor.raw_data = b"".join(np.ascontiguousarray(rows).tobytes() for rows in made)
            return tensor
        with self.path.open("ab") as file:
            file.write(bytes(-file.tell() % _ALIGN))
            begin = file.tell()
            for rows in made:
                file.write(np.ascontiguousarray(rows).data.cast("B"))
            _point(tensor, begin, file.tell() - begin)
        return tensor

    def streamed(self, model: onnx.ModelProto) -> dict[str, StreamedWeight]:
        """Those of its initializers that are not in memory."""
        return {tensor.name: self._mapped(tensor) for tensor in model.graph.initializer if is_external(tensor)}

    def _mapped(self, tensor: onnx.TensorProto) -> StreamedWeight:
        return mapped(self.path, *_place(tensor), tensor)


def values_of(tensor: onnx.TensorProto, weights: Mapping[str, StreamedWeight]) -> NDArray[Any]:
    """Those of an initializer, in memory or among the `weights` that are not."""
    weight = weights.get(tensor.name)
    return np.asarray(weight.values()) if weight is not None else onnx.numpy_helper.to_array(tensor)


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
    _point(tensor, 0, stored_bytes(tensor.data_type, tensor.dims) or 0)


def _whole(name: str, values: NDArray[Any]) -> NDArray[Any]:
    if np.isnan(values).any():
        raise broken(name)
    return values


def load_external(graph: Graph, *, everything: bool) -> dict[str, Region]:
    """Read weights that are still on disk into the model; large ones of the main graph only when asked for.

    Returns where the ones that stayed on disk are, by initializer name.
    """
    left: dict[str, Region] = {}
    for tensor, region, main in _on_disk(graph):
        if main and region.length >= _LARGE and not everything:
            left[tensor.name] = region
        else:
            _inline(tensor, region.read())
    return left


def detach(
    model: onnx.ModelProto, outside: Mapping[str, Region], turned: Mapping[str, StreamedWeight], workdir: Path
) -> Detached:
    """Move every large initializer of the main graph to a scratch file in `workdir`. `outside` is in other files, and
    `turned` is made from those."""
    path = workdir / SCRATCH
    with path.open("wb") as file:
        for tensor in model.graph.initializer:
            known = tensor.name in outside or tensor.name in turned
            if not known and _stored_size(tensor) < _LARGE:
                continue
            file.write(bytes(-file.tell() % _ALIGN))
            start = file.tell()
            if tensor.name in turned:
                turned[tensor.name].write(file)
            else:
                _copy_out(tensor, outside.get(tensor.name), file)
            _point(tensor, start, file.tell() - start)
    return Detached(path)


def outside_weights(model: onnx.ModelProto, outside: Mapping[str, Region]) -> dict[str, StreamedWeight]:
    """Each where it lies."""
    regions = ((tensor, outside[tensor.name]) for tensor in model.graph.initializer if tensor.name in outside)
    return {tensor.name: mapped(item.path, item.offset, item.length, tensor) for tensor, item in regions}


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


def _point(tensor: onnx.TensorProto, offset: int, length: int) -> None:
    for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
        tensor.ClearField(field)
    del tensor.external_data[:]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", SCRATCH), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)


def _place(tensor: onnx.TensorProto) -> tuple[int, int]:
    """Where in the scratch file, and how many bytes."""
    told = {item.key: item.value for item in tensor.external_data}
    return int(told["offset"]), int(told["length"])


def _inline(tensor: onnx.TensorProto, data: bytes) -> None:
    tensor.raw_data = data
    del tensor.external_data[:]
    tensor.ClearField("data_location")
