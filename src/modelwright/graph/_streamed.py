"""Weights that are made while they are written: a model of any size is changed with one of them in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.graph._types import stored_bytes
from modelwright.graph._write import DATA, INLINE_BYTES, MODEL, StreamedTensor, write_stream

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

# Data that onnxruntime maps into memory begins at a page.
_PAGE = 4096
_PIECE = 1 << 22


@dataclass(frozen=True, eq=False)
class StreamedWeight:
    """`values` gives all of them, mapped from a file or made at this moment; `change` is done to pieces of them."""

    data_type: int
    shape: tuple[int, ...]
    values: Callable[[], NDArray[Any]]
    change: Callable[[NDArray[Any]], NDArray[Any]] | None = None

    @property
    def size_bytes(self) -> int:
        size = stored_bytes(self.data_type, self.shape)
        assert size is not None, "text is never streamed"
        return size

    def turned(self, perm: list[int] | None) -> StreamedWeight:
        """Through a Transpose."""
        order = perm if perm is not None else list(reversed(range(len(self.shape))))
        shape = tuple(self.shape[axis] for axis in order)
        return replace(self, shape=shape, values=lambda: self.values().transpose(order))

    def changed(self, data_type: int, change: Callable[[NDArray[Any]], NDArray[Any]]) -> StreamedWeight:
        return replace(self, data_type=data_type, change=change)

    def write(self, file: BinaryIO) -> None:
        for piece in pieces(self.values()):
            made = self.change(piece) if self.change is not None else piece
            file.write(np.ascontiguousarray(made).data.cast("B") if made.size else b"")


def mapped(path: Path, offset: int, length: int, tensor: onnx.TensorProto) -> StreamedWeight:
    """The bytes of a tensor in a file, as its type and shape say."""
    kind, shape = tensor.data_type, tuple(tensor.dims)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    plain = dtype.itemsize * int(np.prod(shape, dtype=np.int64)) == length

    def values() -> NDArray[Any]:
        if not length:
            return np.empty(shape, dtype)
        # Half bytes have no numpy type of their size: they are only handed on.
        return np.memmap(path, dtype if plain else np.uint8, "r", offset, shape if plain else (length,))

    return StreamedWeight(kind, shape, values)


def write_streamed(
    model: onnx.ModelProto, weights: Mapping[str, StreamedWeight], folder: Path, *, in_order: bool = False
) -> Path:
    """`model.onnx`, with `model.onnx.data` when one file could not hold it. Uses the model up: `weights` are those of
    its initializers that have no bytes of their own. They come behind the others, or `in_order` where they stand."""
    path, total = folder / MODEL, sum(weight.size_bytes for weight in weights.values())
    inside = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    if total + inside > INLINE_BYTES:
        _write_beside(model, weights, folder)
        path.write_bytes(model.SerializeToString(deterministic=True))
        return path
    if in_order:
        # As protobuf would write the whole.
        every = [
            _entry(one, weights[one.name])
            if one.name in weights
            else onnx.TensorProto.FromString(one.SerializeToString())
            for one in model.graph.initializer
        ]
        del model.graph.initializer[:]
        with path.open("wb") as file:
            write_stream(file, model, every, every=True)
        return path
    entries = [_entry(tensor, weights[tensor.name]) for tensor in model.graph.initializer if tensor.name in weights]
    for index in reversed(range(len(model.graph.initializer))):
        if model.graph.initializer[index].name in weights:
            del model.graph.initializer[index]
    with path.open("wb") as file:
        write_stream(file, model, entries)
    return path


def _entry(tensor: onnx.TensorProto, weight: StreamedWeight) -> StreamedTensor:
    return StreamedTensor(tensor.name, weight.data_type, weight.shape, weight.size_bytes, weight.write)


def _write_beside(model: onnx.ModelProto, weights: Mapping[str, StreamedWeight], folder: Path) -> None:
    with (folder / DATA).open("wb") as file:
        for tensor in model.graph.initializer:
            if tensor.name not in weights:
                continue
            file.seek(-file.tell() % _PAGE, 1)
            begin = file.tell()
            weights[tensor.name].write(file)
            del tensor.external_data[:]
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (("location", DATA), ("offset", begin), ("length", file.tell() - begin)):
                tensor.external_data.add(key=key, value=str(value))


def pieces(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Along the first dimension."""
    if values.ndim == 0 or not values.size:
        yield values
        return
    rows = max(1, _PIECE * len(values) // max(1, values.nbytes))
    for begin in range(0, len(values), rows):
        yield values[begin : begin + rows]
