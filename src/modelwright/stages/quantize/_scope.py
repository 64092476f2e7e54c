"""Which nodes a request speaks about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import InputError, did_you_mean
from modelwright.stages.quantize._params import ALL_OPERATORS, QuantizeParams
from modelwright.stages.quantize._tensor_types import element_types
from modelwright.targets import adapter_of

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

WORKERS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
# These hand values on with the scale of their input, or disappear into the operator before them.
MOVERS = frozenset(
    {
        "AveragePool",
        "Clip",
        "Flatten",
        "MaxPool",
        "Relu",
        "Reshape",
        "Resize",
        "Slice",
        "Squeeze",
        "Transpose",
        "Unsqueeze",
    }
)
# The quantizer deletes these where the range of the pair behind them does the clamping.
CLAMPS = frozenset({"Clip", "Relu"})
# A table of 256 integers stands for these: between integer kernels it takes the place of a pair, and rounds no more.
LOOKED_UP = frozenset({"LeakyRelu"})
# Left alone even when every operator is asked for: they decide about types, sizes or flow, not values.
_NEVER = frozenset(
    {
        "Cast",
        "CastLike",
        "Constant",
        "ConstantOfShape",
        "If",
        "Loop",
        "NonMaxSuppression",
        "Range",
        "Scan",
        "Shape",
        "Size",
    }
)
WIDE = 16


def static_operators(model: onnx.ModelProto, params: QuantizeParams, activation_bits: int) -> tuple[str, ...]:
    """Operator types to quantize, sorted."""
    present = {node.op_type for node in model.graph.node if _is_known(node)}
    if params.op_types and params.op_types != (ALL_OPERATORS,):
        return tuple(sorted(set(params.op_types) & present))
    if params.op_types or activation_bits >= WIDE:
        return tuple(sorted(present - _NEVER))
    taken = adapter_of(params.scope).operators(activation_bits) if params.scope is not None else None
    kernels = LOOKED_UP if params.pairs == "needed" else frozenset()
    if taken is not None:
        kernels = taken.integers - _NEVER
    return tuple(sorted(present & (WORKERS | MOVERS | kernels)))


def check_scope(model: onnx.ModelProto, params: QuantizeParams) -> tuple[str, ...]:
    """Refuse names that do not exist; returns warnings about operators that this model does not have."""
    nodes = [node.name for node in model.graph.node]
    values = {name for node in model.graph.node for name in (*node.input, *node.output) if name}
    for name in params.nodes_to_exclude:
        _require(name, nodes, "node")
    for override in params.overrides:
        _require(override.tensor, sorted(values), "tensor")
    present = {node.op_type for node in model.graph.node}
    absent = [name for name in params.op_types if name not in present and name != ALL_OPERATORS]
    for name in absent:
        if not onnx.defs.has(name) and not onnx.defs.has(name, "com.microsoft"):
            _require(name, sorted(present), "operator")
    return tuple(f"op_types names {name}, but the model has no such node" for name in absent)


def index_arithmetic(model: onnx.ModelProto) -> set[str]:
    """Nodes that compute floats only to make integers of them: places in a table, which have no rounding to spare."""
    users: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    ends, found = {value.name for value in model.graph.output}, set()
    for node in reversed(model.graph.node):
        readers = [reader for name in node.output for reader in users.get(name, [])]
        counted = all(reader.name in found or _makes_integers(reader) for reader in readers)
        if readers and counted and not ends.intersection(node.output):
            found.add(node.name)
    return found


def other_floats(model: onnx.ModelProto, operators: tuple[str, ...]) -> set[str]:
    """Nodes that compute in double or half precision: onnxruntime's quantizer has no pairs for them."""
    types, kinds = element_types(model), (onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
    nodes = (node for node in model.graph.node if node.op_type in operators and node.output)
    return {node.name for node in nodes if types.get(node.output[0]) in kinds}


def _makes_integers(node: onnx.NodeProto) -> bool:
    kinds = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
    return node.op_type == "Cast" and any(item.name == "to" and item.i in kinds for item in node.attribute)


def excluded_without_name(model: onnx.ModelProto, operators: tuple[str, ...]) -> list[str]:
    """Nodes of other domains that carry the name of an ONNX operator; the quantizer looks at names only."""
    return [node.name for node in model.graph.node if not _is_known(node) and node.op_type in operators]


def _is_known(node: onnx.NodeProto) -> bool:
    """An operator of ONNX, or one of onnxruntime's that became one since."""
    return node.domain in ("", "ai.onnx") or (node.domain, node.op_type) == ("com.microsoft", "Gelu")


def _require(name: str, known: list[str], what: str) -> None:
    if name not in known:
        raise InputError(
            f"the model has no {what} {name}",
            cause=f"the name is not among its {len(known)} {what}s",
            fix=(did_you_mean(name, known) or f"List the {what}s with `wright inspect`.").capitalize(),
        )
