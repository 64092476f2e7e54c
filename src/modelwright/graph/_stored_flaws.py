"""Whether a stored tensor can be what it says: its type, its shape, and as many bytes or numbers as they take."""

from __future__ import annotations

import functools
import itertools
import operator
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.graph._types import STRING, dtype_bits, dtype_name, elements, stored_bytes

if TYPE_CHECKING:
    import onnx
    import onnx.numpy_helper as numpy_helper
else:
    onnx = lazy("onnx")
    numpy_helper = lazy("onnx.numpy_helper")

_MOST, _IMPOSSIBLE = 2**63 - 1, -1
_EXTERNAL, _INT64 = 1, 7
_COMPLEX = frozenset({14, 15})
_LISTS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
# The list for each element type; every type that is not here goes into int32_data.
_LIST_OF = {
    1: "float_data", 14: "float_data", 7: "int64_data", 8: "string_data", 11: "double_data", 15: "double_data",
    12: "uint64_data", 13: "uint64_data",
}  # fmt: skip
_in_lists = operator.attrgetter(*_LISTS)


def tensor_flaw(tensor: onnx.TensorProto, left_on_disk: int | None = None) -> str | None:
    """What is wrong with it, or None. `left_on_disk` is the size of raw bytes that were not read."""
    extent = _extent(tensor.data_type, tuple(tensor.dims[:]))
    if extent == _IMPOSSIBLE:
        return _shape_flaw(tensor)
    if tensor.data_location == _EXTERNAL:
        return None
    raw = len(tensor.raw_data) if left_on_disk is None else left_on_disk
    if raw == extent and not any(_in_lists(tensor)):
        return None
    return _content_flaw(tensor, raw, [name for name in _LISTS if getattr(tensor, name)])


@functools.lru_cache(1024)
def _extent(code: int, dims: tuple[int, ...]) -> int | None:
    """How many raw bytes it takes; None for text, which has no fixed size."""
    bits, count = dtype_bits(code), elements(dims)
    if (bits is None and code != STRING) or min(dims, default=0) < 0 or count * (bits or 1) > _MOST:
        return _IMPOSSIBLE
    return None if bits is None else (count * bits + 7) // 8


def _shape_flaw(tensor: onnx.TensorProto) -> str:
    named, code = f"tensor '{tensor.name}'", tensor.data_type
    if dtype_bits(code) is None and code != STRING:
        return f"{named} has the element type {code}, and there is none"
    wrong = "a negative dimension" if min(tensor.dims) < 0 else "more elements than there can be"
    return f"{named} has {wrong}"


def _content_flaw(tensor: onnx.TensorProto, raw: int, filled: list[str]) -> str | None:
    named = f"tensor '{tensor.name}'"
    shape = f"{dtype_name(tensor.data_type)} {list(tensor.dims)[:8]}"
    if len(filled) + bool(raw) > 1:
        return f"{named} stores its values twice ({', '.join([*filled, 'raw_data' * bool(raw)]).rstrip(', ')})"
    if filled:
        right = _LIST_OF.get(tensor.data_type, "int32_data")
        if filled[0] != right:
            return f"{named} keeps {shape} in {filled[0]}, where it cannot be"
        given, wanted = len(getattr(tensor, right)), _numbers(tensor)
        return None if given == wanted else f"{named} holds {given:,} numbers, but {shape} takes {wanted:,}"
    size = stored_bytes(tensor.data_type, tensor.dims)
    if size is None:
        return None if not raw and not elements(tensor.dims) else f"{named} holds {shape} without the strings"
    return None if raw == size else f"{named} holds {raw:,} bytes, but {shape} takes {size:,}"


def _numbers(tensor: onnx.TensorProto) -> int:
    """Entries of the typed list: complex numbers take two, types under 8 bits share one."""
    count, bits = elements(tensor.dims), dtype_bits(tensor.data_type) or 8
    if tensor.data_type in _COMPLEX:
        return 2 * count
    return (count * bits + 7) // 8 if bits < 8 else count


def sparse_flaw(sparse: onnx.SparseTensorProto) -> str | None:
    """Of a sparse tensor whose two parts are sound in themselves."""
    named, values, indices = f"sparse tensor '{sparse.values.name}'", sparse.values, sparse.indices
    if not sparse.dims or min(sparse.dims) <= 0 or elements(sparse.dims) > _MOST:
        return f"{named} has the impossible shape {list(sparse.dims)[:8]}"
    stored = elements(values.dims)
    if len(values.dims) != 1 or indices.data_type != _INT64:
        return f"{named} needs a list of values and 64-bit indices"
    if tuple(indices.dims) not in ((stored,), (stored, len(sparse.dims))):
        return f"{named} has {stored} values and indices of shape {list(indices.dims)[:8]}"
    if indices.data_location == _EXTERNAL or not stored:
        return None
    return _indices_flaw(sparse, named)


def _indices_flaw(sparse: onnx.SparseTensorProto, named: str) -> str | None:
    found = numpy_helper.to_array(sparse.indices)
    limits = [elements(sparse.dims)] if found.ndim == 1 else list(sparse.dims)
    if (found < 0).any() or (found >= limits).any():
        return f"{named} has an index outside its shape"
    rows = [tuple(row) for row in found.reshape(len(found), -1).tolist()]
    if any(before >= after for before, after in itertools.pairwise(rows)):
        return f"{named} has indices that are not in order, or twice the same"
    return None
