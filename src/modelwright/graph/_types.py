"""Element types, sizes and declared types, in the words of NumPy."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

# TensorProto.DataType → (name, bits per element). Our own, so an older onnx package still knows newer types.
_ELEMENTS: dict[int, tuple[str, int]] = {
    1: ("float32", 32),
    2: ("uint8", 8),
    3: ("int8", 8),
    4: ("uint16", 16),
    5: ("int16", 16),
    6: ("int32", 32),
    7: ("int64", 64),
    9: ("bool", 8),
    10: ("float16", 16),
    11: ("float64", 64),
    12: ("uint32", 32),
    13: ("uint64", 64),
    14: ("complex64", 64),
    15: ("complex128", 128),
    16: ("bfloat16", 16),
    17: ("float8e4m3fn", 8),
    18: ("float8e4m3fnuz", 8),
    19: ("float8e5m2", 8),
    20: ("float8e5m2fnuz", 8),
    21: ("uint4", 4),
    22: ("int4", 4),
    23: ("float4e2m1", 4),
    24: ("float8e8m0", 8),
    25: ("uint2", 2),
    26: ("int2", 2),
    27: ("float6e2m3", 6),
    28: ("float6e3m2", 6),
}
STRING = 8


@dataclass(frozen=True)
class ValueSpec:
    """A graph input or output: a symbolic dimension is its name, an unknown one is None."""

    name: str
    dtype: str | None
    shape: tuple[int | str | None, ...] | None


def dtype_name(code: int) -> str:
    """`float32`, `uint4`, `string`; a type newer than this table is `type<code>`."""
    if code == STRING:
        return "string"
    return _ELEMENTS[code][0] if code in _ELEMENTS else f"type{code}"


def dtype_bits(code: int) -> int | None:
    """Bits per stored element; None for strings and unknown types."""
    return _ELEMENTS[code][1] if code in _ELEMENTS else None


@functools.cache
def is_float(code: int) -> bool:
    return dtype_name(code).startswith(("float", "bfloat"))


def elements(dims: Iterable[int]) -> int:
    return math.prod(dims)


def stored_bytes(code: int, dims: Iterable[int]) -> int | None:
    """Bytes of the raw form; types under 8 bits are packed. None when the type has no fixed size."""
    bits = dtype_bits(code)
    return None if bits is None else (elements(dims) * bits + 7) // 8


def value_spec(value: onnx.ValueInfoProto) -> ValueSpec:
    kind = value.type.WhichOneof("value")
    if kind == "tensor_type":
        tensor = value.type.tensor_type
        dtype = dtype_name(tensor.elem_type) if tensor.elem_type else None
        return ValueSpec(value.name, dtype, _shape(tensor))
    return ValueSpec(value.name, type_name(value.type), None)


def type_name(declared: onnx.TypeProto) -> str | None:
    """`sequence(float32)`, `optional(int64)`, `map(int64,float32)`, `sparse(float32)`."""
    kind = declared.WhichOneof("value")
    if kind == "tensor_type":
        return dtype_name(declared.tensor_type.elem_type)
    if kind == "sparse_tensor_type":
        return f"sparse({dtype_name(declared.sparse_tensor_type.elem_type)})"
    if kind == "sequence_type":
        return f"sequence({type_name(declared.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({type_name(declared.optional_type.elem_type)})"
    if kind == "map_type":
        return f"map({dtype_name(declared.map_type.key_type)},{type_name(declared.map_type.value_type)})"
    return "opaque" if kind else None


def _shape(tensor: onnx.TypeProto.Tensor) -> tuple[int | str | None, ...] | None:
    if not tensor.HasField("shape"):
        return None
    return tuple(_dim(dim) for dim in tensor.shape.dim)


def _dim(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    # Some exporters write -1 or a question mark for "unknown".
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None
    return None if dim.dim_param in ("", "?") else dim.dim_param
