"""Which float weight each stored integer tensor stands for, and how to read it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.diagnosis._dequant import Grid, dequantize, make_grid, round_trip, rows_of, unpack_nbits
from modelwright.diagnosis._match import grid_of
from modelwright.diagnosis._match_view import DEQUANTIZE, QUANTIZE, RESCALED, View, attribute, label
from modelwright.diagnosis._types import Unmatched
from modelwright.graph import dtype_name

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

_SUFFIXES = ("_quantized", "_q", "_Q4", "_DQ_Q4")
# Integer operators: the places of weight, scale and zero point, and the axis of several scales.
_INTEGER_INPUTS = {
    "QLinearConv": (3, 4, 5, 0),
    "QLinearMatMul": (3, 4, 5, -1),
    "DynamicQuantizeMatMul": (1, 2, 3, -1),
}
_SCALED_LATER = {"MatMulInteger": -1, "ConvInteger": 0}
PartReader = Callable[[slice], "NDArray[Any]"]
_BIAS_POSITION = {"Conv": 2, "ConvTranspose": 2, "Gemm": 2, "QLinearConv": 8}


@dataclass(frozen=True, eq=False)
class WeightPair:
    """A float weight and a way to read what its quantized form stands for, in float64: some rows of it, or columns
    where the `axis` is 1."""

    weight: str
    quant: str
    node: str
    dtype: str
    granularity: str
    bias: bool
    read: PartReader
    shape: tuple[int, ...]
    axis: int = 0


@dataclass(frozen=True)
class _Stored:
    """A quantized weight before its float partner is known."""

    quant: str
    node: onnx.NodeProto
    position: int
    dtype: str
    granularity: str
    read: PartReader
    shape: tuple[int, ...]
    axis: int = 0


def match_weights(wanted: View, got: View) -> tuple[tuple[WeightPair, ...], tuple[Unmatched, ...]]:
    """Pairs in the order of the quantized graph, and integer weights without a float partner."""
    pairs: dict[str, WeightPair] = {}
    alone: list[Unmatched] = []
    for item in _stored(got):
        weight = _float_weight(item, wanted, got)
        reason = _changed_before(weight, wanted, got) if weight is not None else _nothing_there(item)
        if weight is None or reason is not None:
            alone.append(Unmatched(item.quant, str(reason)))
            continue
        read, at = _unscaled(item, wanted, got), label(item.node)
        bias = item.dtype == "int32" or _BIAS_POSITION.get(item.node.op_type) == item.position
        kind = item.dtype, item.granularity
        pairs.setdefault(weight, WeightPair(weight, item.quant, at, *kind, bias, read, item.shape, item.axis))
    return tuple(pairs.values()), tuple(alone)


def _unscaled(item: _Stored, wanted: View, got: View) -> PartReader:
    """As the float model has it, where the quantized one divides the channels that this product reads by a stored
    vector, and its weight has taken them back."""
    maker = got.maker(item.node.input[0]) if item.position == 1 else None
    while maker is not None and maker.op_type in (DEQUANTIZE, QUANTIZE):
        maker = got.maker(maker.input[0])
    if maker is None or maker.op_type != "Mul" or wanted.has(maker.output[0]):
        return item.read
    vector = next((name for name in maker.input if name in got.stored and len(got.shape(name)) == 1), None)
    if vector is None or not any(wanted.has(name) for name in maker.input):
        return item.read
    shape = (1, -1) if attribute(item.node, "transB", 0) else (-1, 1)
    factors = got.values(vector).astype(np.float64).reshape(shape)
    return lambda part: item.read(part) * (factors if item.axis else rows_of(factors, part))


def _nothing_there(item: _Stored) -> str:
    return f"the float model has no weight at {label(item.node)}, input {item.position}"


def _changed_before(weight: str, wanted: View, got: View) -> str | None:
    """A batch normalization that is gone was folded into the weights before they were quantized, or factors were."""
    if weight in got.rescaled:
        return RESCALED
    for node in wanted.readers(weight):
        after = wanted.folded_behind(node.output[0], got)
        if after is not None:
            return f"{label(after)} was folded into it; give the optimized float model to compare weights"
    return None


def _stored(got: View) -> Iterator[_Stored]:
    for node in got.nodes:
        if node.op_type == DEQUANTIZE and node.input[0] in got.stored:
            yield from _dequantized(node, got)
        elif node.op_type == QUANTIZE and node.input[0] in got.stored:
            yield from _quantized_at_run(node, got)
        elif node.op_type in _INTEGER_INPUTS:
            yield from _integer(node, got, *_INTEGER_INPUTS[node.op_type])
        elif node.op_type in _SCALED_LATER and node.input[1] in got.stored:
            yield from _scaled_later(node, got)
        elif node.op_type == "MatMulNBits":
            yield _nbits(node, got)
        else:
            yield from _half(node, got)


def _dequantized(node: onnx.NodeProto, got: View) -> Iterator[_Stored]:
    grid, name = grid_of(got, node), node.input[0]
    if grid is not None:
        dtype = dtype_name(got.stored[name].data_type)
        reader, position = _first_reader(node, got)
        read = functools.partial(_dequantized_rows, got, name, grid)
        yield _Stored(name, reader, position, dtype, grid.granularity, read, got.shape(name))


def _quantized_at_run(node: onnx.NodeProto, got: View) -> Iterator[_Stored]:
    """A float weight that goes through a Q/DQ pair whenever the model runs."""
    grid, name = grid_of(got, node), node.input[0]
    after = next((item for item in got.readers(node.output[0]) if item.op_type == DEQUANTIZE), None)
    if grid is not None and grid.limits is not None and after is not None:
        reader, position = _first_reader(after, got)
        yield _Stored(
            name, reader, position, grid.dtype, grid.granularity,
            lambda part: round_trip(got.values(name), grid, part), got.shape(name),
        )  # fmt: skip


def _integer(node: onnx.NodeProto, got: View, weight: int, scale: int, zero: int, axis: int) -> Iterator[_Stored]:
    names = [node.input[place] if place < len(node.input) else "" for place in (weight, scale, zero)]
    if names[0] in got.stored and names[1] in got.stored:
        yield _plain(node, weight, got, (names[0], names[1], names[2]), axis)


def _scaled_later(node: onnx.NodeProto, got: View) -> Iterator[_Stored]:
    """Dynamic quantization: the weight's scale is multiplied in after the integer product."""
    scale = next((name for name in _scales_behind(node, got) if name in got.stored), None)
    zero = node.input[3] if len(node.input) > 3 else ""
    if scale is not None:
        yield _plain(node, 1, got, (node.input[1], scale, zero), _SCALED_LATER[node.op_type])


def _scales_behind(node: onnx.NodeProto, got: View) -> Iterator[str]:
    for cast in got.readers(node.output[0]):
        for product in got.readers(cast.output[0]):
            for name in product.input:
                maker = got.maker(name)
                if maker is not None and maker.op_type == "Mul" and name != cast.output[0]:
                    yield from maker.input


def _plain(node: onnx.NodeProto, position: int, got: View, names: tuple[str, str, str], axis: int) -> _Stored:
    weight, scale, zero = names
    dtype = dtype_name(got.stored[weight].data_type)
    grid = make_grid(got.values(scale), got.values(zero) if zero in got.stored else None, dtype, axis)
    at = 1 if node.op_type != "QLinearConv" or position != 8 else 2
    read = functools.partial(_dequantized_rows, got, weight, grid)
    return _Stored(weight, node, at, dtype, grid.granularity, read, got.shape(weight))


def _dequantized_rows(got: View, name: str, grid: Grid, part: slice) -> NDArray[Any]:
    return dequantize(got.values(name), grid, part)


def _nbits(node: onnx.NodeProto, got: View) -> _Stored:
    bits, block = attribute(node, "bits", 4), attribute(node, "block_size", 32)
    rows, columns = attribute(node, "K", 0), attribute(node, "N", 0)

    def read(part: slice) -> NDArray[Any]:
        """Some columns: those are packed together."""
        blocks = -(-rows // block)
        packed = got.values(node.input[1]).reshape(columns, blocks, -1)[part]
        stored = unpack_nbits(packed, bits, block).astype(np.float64)
        scale = got.values(node.input[2]).reshape(columns, blocks, 1)[part].astype(np.float64)
        zero: NDArray[Any] | float = float(1 << (bits - 1))
        if len(node.input) > 3 and node.input[3]:
            zeros = got.values(node.input[3])
            whole = zeros if zeros.dtype.kind == "f" else unpack_nbits(zeros.reshape(columns, -1), bits, blocks)
            zero = whole.reshape(columns, blocks, 1)[part].astype(np.float64)
        values: NDArray[Any] = ((stored - zero) * scale).reshape(len(packed), -1)[:, :rows]
        return values.T

    return _Stored(node.input[1], node, 1, f"uint{bits}", f"block {block}", read, (rows, columns), axis=1)


def _half(node: onnx.NodeProto, got: View) -> Iterator[_Stored]:
    """Weights that were narrowed to 16-bit floats."""
    for position, name in enumerate(node.input):
        if name in got.stored and dtype_name(got.stored[name].data_type) in ("float16", "bfloat16"):
            kind = dtype_name(got.stored[name].data_type)
            yield _Stored(
                name, node, position, kind, "element", functools.partial(_half_rows, got, name), got.shape(name)
            )


def _half_rows(got: View, name: str, part: slice) -> NDArray[Any]:
    return rows_of(got.values(name), part).astype(np.float64)


def _first_reader(node: onnx.NodeProto, got: View) -> tuple[onnx.NodeProto, int]:
    use = next(iter(got.uses.get(node.output[0], ())), None)
    return (got.nodes[use.node], use.position) if use is not None else (node, 0)


def _float_weight(item: _Stored, wanted: View, got: View) -> str | None:
    """By name, then by the node that reads it, then by the tensor that node makes."""
    shape = None if item.node.op_type == "MatMulNBits" else got.shape(item.quant)
    bases = [item.quant, *(item.quant.removesuffix(end) for end in _SUFFIXES if item.quant.endswith(end))]
    for name in bases:
        if _is_float(name, wanted) and (shape is None or wanted.shape(name) == shape):
            return name
    for twin in _twins(item.node, wanted, got):
        name = twin.input[item.position] if item.position < len(twin.input) else ""
        if _is_float(name, wanted) and (shape is None or wanted.shape(name) == shape):
            return name
    return None


def _twins(node: onnx.NodeProto, wanted: View, got: View) -> Iterator[onnx.NodeProto]:
    for name in (node.name, node.name.removesuffix("_quant"), node.name.removesuffix("_Q4")):
        if name in wanted.by_name:
            yield wanted.nodes[wanted.by_name[name]]
    for output in node.output:
        maker = wanted.maker(output)
        if maker is not None:
            yield maker


def _is_float(name: str, wanted: View) -> bool:
    return name in wanted.stored and dtype_name(wanted.stored[name].data_type) in ("float32", "float64")
