"""The produced file is measured; a precision that the model cannot have is refused, never claimed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import ExecutionError, InputError
from modelwright.graph import Precision, TypeShare
from modelwright.stages.quantize._neighbours import Packing, fits, packing_of
from modelwright.stages.quantize._params import QuantizeParams, ReducedOps
from modelwright.stages.quantize._precision import STEPS, Step
from modelwright.stages.quantize._scope import WORKERS

if TYPE_CHECKING:
    import onnx
    from numpy.typing import NDArray
else:
    onnx = lazy("onnx")

REDUCED_BITS = 7
# 255 · (64 + 64) still fits 16 bits with a sign, whichever two weights are neighbours.
_REDUCED_MOST = 64
_NEARLY_ALL = 0.9
_LARGER_PART = 0.5
_PAIRS = frozenset({"QuantizeLinear", "DequantizeLinear"})
_REDUCED = frozenset(
    {
        "MatMulNBits",
        "MatMulInteger",
        "ConvInteger",
        "DynamicQuantizeMatMul",
        "DynamicQuantizeLSTM",
        "QAttention",
        "QEmbedLayerNormalization",
    }
)
_PRODUCTS = frozenset({"Gemm", "MatMul"})
_REACHES_MORE = {
    "fp16": "fp32 changes nothing",
    "static": "fp16 takes every weight",
    "dynamic": "w8a8 reaches convolutions and tables too, fp16 every weight",
    "int4": "w8a8 reaches convolutions and tables too, fp16 every weight",
}
_PLUMBING = frozenset({*_PAIRS, "DynamicQuantizeLinear", "Cast"})


def require_true_label(
    precision: Precision,
    steps: tuple[Step, ...],
    params: QuantizeParams,
    kept_float: int,
    narrow: NarrowProducts | None = None,
) -> tuple[str, ...]:
    """Fail when the file does not hold the promised widths; returns what is true but should be known.

    Where products were `kept_float` because that is faster, more than half of the work is integers even if the larger
    part of the weights is not. Where what lies between products is wider, the label speaks about the products, and
    `narrow` are those that read activations of its width.
    """
    first, last = steps[0], steps[-1]
    if last.kind == "none":
        return ()
    if first.kind == "fp16":
        return _require_half(precision, params)
    own = {item.dtype for item in params.overrides}
    quantized = tuple(item for item in precision.weights if item.quantized and item.dtype not in own)
    _require_share(precision, quantized, first.weight_bits, first.kind, "weights")
    if narrow is not None:
        _require_narrow(precision, narrow, _activation_bits(steps))
    else:
        activations = tuple(item for item in precision.activations if item.dtype not in own)
        _require_share(precision, activations, _activation_bits(steps), first.kind, "activations", by="tensors")
    share = precision.quantized_share or 0.0
    note = f"{share:.0%} of the weight elements are quantized; the rest stays float"
    narrowed = params.op_types or params.nodes_to_exclude or kept_float
    if share < _LARGER_PART and not narrowed:
        raise InputError(
            f"the label is not true: {note}",
            cause=f"the produced graph measures as {precision.label or precision.reason}",
            fix=f"Choose a precision that reaches the rest ({_REACHES_MORE[first.kind]}), "
            "or name the operators in op_types to say that a part is enough.",
        )
    return (note,) if share < _NEARLY_ALL else ()


@dataclass(frozen=True)
class NarrowProducts:
    """Products of stored weights that read activations of a width, and all of them."""

    count: int
    of: int


def narrow_products(model: onnx.ModelProto, bits: int, asked: Container[str] = ()) -> NarrowProducts:
    """Without those whose width was `asked` for by the name of what they write."""
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    halves = {node.output[0]: node for node in model.graph.node if node.op_type == "DequantizeLinear"}
    read = []
    for node in model.graph.node:
        first, second = (halves.get(name) for name in (*node.input, "", "")[:2])
        if node.output[0] in asked:
            continue
        if node.op_type in WORKERS and first is not None and second is not None and second.input[0] in stored:
            read.append(_bits(stored[first.input[2]]) == bits)
    return NarrowProducts(sum(read), len(read))


def _bits(tensor: onnx.TensorProto) -> int:
    return 8 * int(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)


def _require_narrow(precision: Precision, narrow: NarrowProducts, bits: int) -> None:
    if narrow.of and narrow.count >= _NEARLY_ALL * narrow.of:
        return
    raise InputError(
        f"the label is not true: {narrow.count} of {narrow.of} products read {bits}-bit activations",
        cause=f"the produced graph measures as {precision.label or precision.reason}",
        fix="Choose a precision that this model can have: w8a16.",
    )


def weight_range_bits(stored: Iterable[NDArray[Any]]) -> int | None:
    """Bits that signed 8-bit tensors use, by their largest value; scalars are zero points. None when there are none."""
    largest = [max(-int(values.min()), int(values.max())) for values in stored if values.ndim and values.size]
    return None if not largest else REDUCED_BITS if max(largest) <= _REDUCED_MOST else 8


def saturating(graph: onnx.GraphProto, values_of: Callable[[str], NDArray[Any]]) -> tuple[str, ...]:
    """Signed 8-bit weights whose products may pass the 16 bits in which x86 CPUs without VNNI add two of them."""
    stored = {tensor.name: tensor for tensor in graph.initializer if tensor.data_type == onnx.TensorProto.INT8}
    packings = _packings(graph, stored)
    found = []
    for name in stored:
        values = values_of(name)
        if weight_range_bits([values]) in (None, REDUCED_BITS):
            continue
        known = packings.get(name, [None])
        if not all(packing is not None and fits(values, packing) for packing in known):
            found.append(name)
    return tuple(found)


def _packings(graph: onnx.GraphProto, stored: dict[str, onnx.TensorProto]) -> dict[str, list[Packing | None]]:
    """How each stored weight is read: by products, through its DequantizeLinear; None where it is read otherwise."""
    halves = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "DequantizeLinear"}
    found: dict[str, list[Packing | None]] = {}
    for node in graph.node:
        for place, read in enumerate(node.input):
            tensor = stored.get(halves.get(read, ""))
            if tensor is not None:
                rank, channels = len(tensor.dims), tensor.dims[1] if len(tensor.dims) > 1 else 0
                packing = packing_of(node, rank, channels) if place == 1 else None
                found.setdefault(tensor.name, []).append(packing)
    return found


def require_exact(beyond: tuple[str, ...]) -> None:
    """That products do not saturate is a promise: one weight that may breaks it."""
    if beyond:
        raise ExecutionError(
            f"the products of {beyond[0]} may saturate",
            cause="the quantizer wrote neighbours whose products pass 16 bits, in which old x86 CPUs add them",
            fix="Report this model; with reduce_range=false it is built for CPUs whose products do not saturate.",
        )


def tally(model: onnx.ModelProto) -> tuple[ReducedOps, ...]:
    """Per operator: nodes that compute with reduced precision, and nodes that do not."""
    nodes = model.graph.node
    from_pair = {name for node in nodes if node.op_type == "DequantizeLinear" for name in node.output}
    into_pair = {node.input[0] for node in nodes if node.op_type == "QuantizeLinear"}
    halves = _half_values(model)
    reduced: Counter[str] = Counter()
    untouched: Counter[str] = Counter()
    for node in nodes:
        if node.op_type in _PLUMBING:
            continue
        # An operator is inside pairs when it reads dequantized values and its result is quantized again;
        # a product of dequantized values is an integer product also where its result is not.
        inside = bool(from_pair.intersection(node.input) and into_pair.intersection(node.output))
        inside = inside or (node.op_type in _PRODUCTS and from_pair.issuperset(node.input))
        touched = node.op_type in _REDUCED or inside or halves.intersection(node.input)
        (reduced if touched else untouched)[node.op_type] += 1
    return tuple(ReducedOps(name, reduced[name], untouched[name]) for name in sorted({*reduced, *untouched}))


def _require_half(precision: Precision, params: QuantizeParams) -> tuple[str, ...]:
    """What the request itself keeps in float32 does not make the label a lie; it is said."""
    if not (params.op_types_float or params.nodes_to_exclude):
        _require_share(precision, precision.weights, STEPS["fp16"].weight_bits, "fp16", "weights")
        return ()
    halves = tuple(item for item in precision.weights if item.dtype == "float16")
    _require_share(precision, halves, STEPS["fp16"].weight_bits, "fp16", "weights")
    total = sum(item.elements for item in precision.weights)
    share = sum(item.elements for item in halves) / total
    return (f"{share:.0%} of the weight elements are float16; the request keeps the rest as it is",)


def _activation_bits(steps: tuple[Step, ...]) -> int:
    """Chained fp16 narrows float activations of weight-only models, and leaves quantized ones alone."""
    if steps[0].kind == "int4":
        return steps[-1].activation_bits
    return steps[0].activation_bits


def _require_share(
    precision: Precision, shares: Iterable[TypeShare], bits: int, kind: str, what: str, by: str = "elements"
) -> None:
    counts: Counter[int] = Counter()
    for item in shares:
        counts[item.bits] += getattr(item, by)
    total = sum(counts.values())
    if total and counts[bits] >= _NEARLY_ALL * total:
        return
    found = ", ".join(f"{width} bits {count / total:.0%}" for width, count in counts.most_common()) if total else "none"
    raise InputError(
        f"the label is not true: the {what} are not {bits}-bit",
        cause=f"the produced graph measures as {precision.label or precision.reason} ({what}: {found})",
        fix=f"Unfuse operators the quantizer does not know, or choose another precision ({_REACHES_MORE[kind]}).",
    )


def _half_values(model: onnx.ModelProto) -> set[str]:
    half = 10
    found = {tensor.name for tensor in model.graph.initializer if tensor.data_type == half}
    found.update(
        value.name
        for value in (*model.graph.value_info, *model.graph.input)
        if value.type.tensor_type.elem_type == half
    )
    return found
