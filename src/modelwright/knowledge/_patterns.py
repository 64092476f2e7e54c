"""What a graph looks like it has to offer each pass.

A pattern that is there is no pass that fires, and one that fires is no gain: this only sets an order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright.graph import Graph
from modelwright.knowledge._links import NodeLinks, attribute

if TYPE_CHECKING:
    from onnx import NodeProto

_ACTIVATIONS = ("Relu", "LeakyRelu", "Sigmoid", "Tanh", "Clip", "HardSigmoid")
_GELUS = ("Gelu", "FastGelu", "QuickGelu")
_ELEMENTWISE = (*_ACTIVATIONS, *_GELUS, "Cast", "Neg", "Exp", "Sqrt", "Erf", "Identity", "Add", "Mul", "Sub", "Div")
_BETWEEN = ("Add", "Mul", "Div", "Where", "Cast", "Dropout", "Identity")
_FAR = 2**31 - 1


@dataclass(frozen=True)
class Pattern:
    """`passes` are those that look for it here; none where no pass of this tool does."""

    name: str
    passes: tuple[str, ...]
    says: str
    found: Callable[[NodeLinks], list[NodeProto]]


def pattern_counts(graph: Graph) -> dict[str, int]:
    """How often each is there; what is not there is left out."""
    wiring = NodeLinks(graph)
    counts = {pattern.name: len(pattern.found(wiring)) for pattern in PATTERNS}
    return {name: count for name, count in counts.items() if count}


def patterns_for(name: str) -> tuple[Pattern, ...]:
    """Those that a pass looks for."""
    return tuple(pattern for pattern in PATTERNS if name in pattern.passes)


# --- activations ------------------------------------------------------------------------------------------------------


def _erf_gelus(wires: NodeLinks) -> list[NodeProto]:
    """Exporters divide by the root of two, or multiply by its inverse."""
    found = []
    for erf in wires.of("Erf"):
        for before in wires.makers(erf, "Div", "Mul"):
            wanted = math.sqrt(2) if before.op_type == "Div" else 1 / math.sqrt(2)
            plus_one = any(_is(wires.scalar(one), 1.0) for one in wires.takers(erf, "Add"))
            if _is(wires.scalar(before), wanted) and plus_one:
                found.append(before)
    return found


def _bias_gelus(wires: NodeLinks) -> list[NodeProto]:
    starts = [*_erf_gelus(wires), *wires.of("Gelu")]
    return [node for node in starts if any(_is_bias(wires, add) for add in wires.makers(node, "Add"))]


def _tanh_gelus(wires: NodeLinks) -> list[NodeProto]:
    return [node for node in wires.of("Tanh") if any(_is(one, 0.044715) for one in _scalars_above(wires, node, 5))]


def _quick_gelus(wires: NodeLinks) -> list[NodeProto]:
    """x * Sigmoid(a * x): the gate closes on the very value it comes from."""
    found = []
    for sigmoid in wires.of("Sigmoid"):
        scale = wires.maker(sigmoid.input[0], "Mul")
        if scale is None or wires.scalar(scale) is None:
            continue
        gated = wires.computed(scale)
        found += [node for node in wires.takers(sigmoid, "Mul") if set(gated) & set(node.input)][:1]
    return found


# --- normalization ----------------------------------------------------------------------------------------------------


def _layer_norms(wires: NodeLinks) -> list[NodeProto]:
    """x - mean(x), with the mean on either side, then the root of the mean of its square."""
    found = []
    for minus in wires.of("Sub"):
        means = [mean for mean in wires.makers(minus, "ReduceMean") if mean.input[0] in minus.input]
        if means and any(_is_root_of_mean(wires, square) for square in _squares_of(wires, minus.output[0])):
            found.append(minus)
    return found


def _rms_norms(wires: NodeLinks) -> list[NodeProto]:
    """The same without a mean that is taken off first."""
    plain = {node.output[0] for node in _layer_norms(wires)}
    squares = [node for node in wires.of("Pow", "Mul") if _squared(wires, node) not in (None, *plain)]
    return [node for node in squares if _is_root_of_mean(wires, node)]


def _skip_layer_norms(wires: NodeLinks) -> list[NodeProto]:
    """A sum of two computed values, which goes on to the next sum as well, in front of a layer normalization."""
    norms = {node.input[0] for node in wires.of("LayerNormalization")}
    norms |= {mean.input[0] for node in _layer_norms(wires) for mean in wires.makers(node, "ReduceMean")}
    return [node for node in wires.of("Add") if node.output[0] in norms and len(wires.computed(node)) == 2]


# --- attention and products -------------------------------------------------------------------------------------------


def _attentions(wires: NodeLinks) -> list[NodeProto]:
    """A softmax between two products of computed values, not the one behind a classifier."""
    return [node for node in wires.of("Softmax") if _scores(wires, node) and _weighs(wires, node)]


def _scores(wires: NodeLinks, softmax: NodeProto) -> bool:
    return any(len(wires.computed(one)) == 2 for one in _above(wires, softmax, "MatMul", 4))


def _weighs(wires: NodeLinks, softmax: NodeProto) -> bool:
    takers = [*wires.takers(softmax, "MatMul")]
    takers += [one for node in wires.takers(softmax, *_BETWEEN) for one in wires.takers(node, "MatMul")]
    return any(len(wires.computed(one)) == 2 for one in takers)


def _bias_softmaxes(wires: NodeLinks) -> list[NodeProto]:
    adds = (wires.maker(node.input[0], "Add") for node in wires.of("Softmax"))
    return [add for add in adds if add is not None and wires.scalar(add) is None]


def _biased_matmuls(wires: NodeLinks) -> list[NodeProto]:
    found = ((node, wires.sole(node, "Add")) for node in wires.of("MatMul") if wires.is_constant(node.input[1]))
    return [node for node, add in found if add is not None and _is_bias(wires, add)]


def _transposed_matmuls(wires: NodeLinks) -> list[NodeProto]:
    return [node for node in wires.of("MatMul") if any(map(_swaps_last, wires.makers(node, "Transpose")))]


def _scaled_matmuls(wires: NodeLinks) -> list[NodeProto]:
    found = []
    for node in wires.of("MatMul"):
        around = [*wires.makers(node, "Mul", "Div"), wires.sole(node, "Mul", "Div")]
        if any(one is not None and wires.scalar(one) is not None for one in around):
            found.append(node)
    return found


def _transposed_gemms(wires: NodeLinks) -> list[NodeProto]:
    gemms = wires.of("Gemm")
    return [node for node in gemms if wires.makers(node, "Transpose") or wires.sole(node, "Transpose") is not None]


def _summed_gemms(wires: NodeLinks) -> list[NodeProto]:
    """One that adds nothing yet."""
    return [node for node in wires.of("Gemm") if len(node.input) < 3 and wires.sole(node, "Add") is not None]


# --- convolutions -----------------------------------------------------------------------------------------------------


def _conv_then(kind: str) -> Callable[[NodeLinks], list[NodeProto]]:
    """Folded into the weights, so what comes after must be constant."""

    def found(wires: NodeLinks) -> list[NodeProto]:
        pairs = ((node, wires.sole(node, kind)) for node in wires.of("Conv"))
        return [node for node, after in pairs if after is not None and len(wires.computed(after)) == 1]

    return found


def _conv_add_activations(wires: NodeLinks) -> list[NodeProto]:
    sums = ((node, wires.sole(node, "Add")) for node in wires.of("Conv"))
    return [node for node, add in sums if add is not None and wires.sole(add, *_ACTIVATIONS) is not None]


def _then(kind: str, *after: str) -> Callable[[NodeLinks], list[NodeProto]]:
    return lambda wires: [node for node in wires.of(kind) if wires.sole(node, *after) is not None]


# --- shapes -----------------------------------------------------------------------------------------------------------


def _idle_slices(wires: NodeLinks) -> list[NodeProto]:
    """From the beginning to beyond the end, one by one."""
    found = []
    for node in wires.of("Slice"):
        numbers = [wires.numbers(name) for name in (*node.input[1:3], *node.input[4:5])]
        if len(numbers) < 2 or numbers[0] is None or numbers[1] is None:
            continue
        steps = numbers[2] if len(numbers) > 2 else [1.0]
        if not any(numbers[0]) and min(numbers[1], default=0) >= _FAR and set(steps or ()) <= {1.0}:
            found.append(node)
    return found


def _idle_expands(wires: NodeLinks) -> list[NodeProto]:
    shapes = ((node, wires.numbers(node.input[1])) for node in wires.of("Expand"))
    return [node for node, shape in shapes if shape is not None and set(shape) <= {1.0}]


def _constant_unsqueezes(wires: NodeLinks) -> list[NodeProto]:
    return [node for node in wires.of("Unsqueeze") if wires.is_constant(node.input[0])]


def _meeting_transposes(wires: NodeLinks) -> list[NodeProto]:
    """Two of them with nothing in between that minds the order."""
    found = []
    for node in wires.of("Transpose"):
        near = wires.takers(node, *_ELEMENTWISE)
        if wires.takers(node, "Transpose") or any(wires.takers(one, "Transpose") for one in near):
            found.append(node)
    return found


def _high_ranks(wires: NodeLinks) -> list[NodeProto]:
    moves = [node for node in wires.of("Transpose") if len(attribute(node, "perm")) > 4]
    return [node for node in moves if wires.makers(node, "Reshape") and wires.sole(node, "Reshape") is not None]


# --- parts ------------------------------------------------------------------------------------------------------------


def _is(number: float | None, wanted: float) -> bool:
    return number is not None and math.isclose(number, wanted, rel_tol=1e-3)


def _is_bias(wires: NodeLinks, add: NodeProto) -> bool:
    tensors = [wires.constant(name) for name in add.input]
    return any(tensor is not None and len(tensor.dims) == 1 for tensor in tensors)


def _swaps_last(node: NodeProto) -> bool:
    order = attribute(node, "perm")
    rank = len(order)
    return rank >= 2 and order == [*range(rank - 2), rank - 1, rank - 2]


def _squared(wires: NodeLinks, node: NodeProto) -> str | None:
    """The value that this is the square of."""
    if node.op_type == "Mul":
        return node.input[0] if len(node.input) == 2 and node.input[0] == node.input[1] else None
    return node.input[0] if node.op_type == "Pow" and wires.numbers(node.input[1]) == [2.0] else None


def _squares_of(wires: NodeLinks, name: str) -> list[NodeProto]:
    return [node for node in wires.of("Pow", "Mul") if _squared(wires, node) == name]


def _is_root_of_mean(wires: NodeLinks, square: NodeProto) -> bool:
    means = wires.takers(square, "ReduceMean")
    return any(wires.takers(add, "Sqrt") for mean in means for add in wires.takers(mean, "Add"))


def _above(wires: NodeLinks, node: NodeProto, kind: str, steps: int) -> Iterator[NodeProto]:
    yield from wires.makers(node, kind)
    if steps:
        for one in wires.makers(node, *_BETWEEN):
            yield from _above(wires, one, kind, steps - 1)


def _scalars_above(wires: NodeLinks, node: NodeProto, steps: int) -> Iterator[float | None]:
    for one in wires.makers(node, "Mul", "Add", "Pow"):
        yield wires.scalar(one)
        if steps:
            yield from _scalars_above(wires, one, steps - 1)


_T = "transformers_"
PATTERNS = (
    Pattern("gelu_fusion", ("gelu_fusion", f"{_T}gelu_fusion"), "x/√2 or x·0.707 before Erf", _erf_gelus),
    Pattern("gelu_single", ("standard_gelu_fusion",), "x/√2 or x·0.707 before Erf", _erf_gelus),
    Pattern("bias_gelu_fusion", ("bias_gelu_fusion", f"{_T}bias_gelu_fusion"), "a bias before GELU", _bias_gelus),
    Pattern("fast_gelu_fusion", ("fast_gelu_fusion", f"{_T}fast_gelu_fusion"), "0.044715·x³ before Tanh", _tanh_gelus),
    Pattern("quick_gelu_fusion", ("quick_gelu_fusion", f"{_T}quick_gelu_fusion"), "x·Sigmoid(a·x)", _quick_gelus),
    Pattern(
        "layer_norm_fusion",
        ("layer_norm_fusion", "standard_layer_norm_fusion", f"{_T}layer_norm_fusion"),
        "x - mean(x), then the root of the mean of its square",
        _layer_norms,
    ),
    Pattern(
        "simplified_layer_norm_fusion", ("simplified_layer_norm_fusion",), "the root of the mean of x²", _rms_norms
    ),
    Pattern("fuse_rmsnorm", (f"{_T}simplified_layer_norm_fusion",), "the root of the mean of x²", _rms_norms),
    Pattern(
        "skip_layer_norm_fusion",
        ("skip_layer_norm_fusion", f"{_T}skip_layer_norm_fusion"),
        "a sum of two computed values before a layer normalization",
        _skip_layer_norms,
    ),
    Pattern("attention_fusion", ("attention_fusion", f"{_T}attention_fusion"), "Softmax between products", _attentions),
    Pattern("bias_softmax_fusion", (), "Add before Softmax", _bias_softmaxes),
    Pattern("matmul_add_fusion", ("matmul_add_fusion",), "MatMul by weights, then a bias", _biased_matmuls),
    Pattern("matmul_add_gemm", (), "MatMul by weights, then a bias", _biased_matmuls),
    Pattern("matmul_activation_fusion", (), "MatMul, then an activation", _then("MatMul", *_ACTIVATIONS, *_GELUS)),
    Pattern("matmul_transpose_fusion", ("matmul_transpose_fusion",), "a swap before MatMul", _transposed_matmuls),
    Pattern("matmul_scale_fusion", ("matmul_scale_fusion",), "a number times MatMul", _scaled_matmuls),
    Pattern(
        "conv_bn_fusion", ("conv_bn_fusion",), "Conv, then BatchNormalization", _then("Conv", "BatchNormalization")
    ),
    Pattern("conv_add_fusion", ("conv_add_fusion",), "Conv, then a constant sum", _conv_then("Add")),
    Pattern("conv_mul_fusion", ("conv_mul_fusion",), "Conv, then a constant product", _conv_then("Mul")),
    Pattern(
        "conv_activation_fusion", ("conv_activation_fusion",), "Conv, then an activation", _then("Conv", *_ACTIVATIONS)
    ),
    Pattern(
        "conv_add_activation_fusion",
        ("conv_add_activation_fusion",),
        "Conv, then a sum, then an activation",
        _conv_add_activations,
    ),
    Pattern("pad_fusion", ("pad_fusion",), "Pad before Conv", _then("Pad", "Conv")),
    Pattern(
        "gemm_activation_fusion", ("gemm_activation_fusion",), "Gemm, then an activation", _then("Gemm", *_ACTIVATIONS)
    ),
    Pattern("gemm_sum_fusion", ("gemm_sum_fusion",), "Gemm that adds nothing, then a sum", _summed_gemms),
    Pattern("gemm_transpose_fusion", ("gemm_transpose_fusion",), "Transpose beside Gemm", _transposed_gemms),
    Pattern("slice_elimination", ("slice_elimination",), "Slice of everything", _idle_slices),
    Pattern("expand_elimination", ("expand_elimination",), "Expand by ones", _idle_expands),
    Pattern("unsqueeze_elimination", ("unsqueeze_elimination",), "Unsqueeze of a constant", _constant_unsqueezes),
    Pattern("concat_slice_elimination", (), "Concat, then Slice", _then("Concat", "Slice")),
    Pattern("transpose_optimizer", ("transpose_optimizer",), "Transposes that meet", _meeting_transposes),
    Pattern("high_rank_transpose", ("lower_rank_transpose",), "Reshape, Transpose of rank > 4, Reshape", _high_ranks),
)
"""Of what is published as 31 of them, with what was wrong there put right."""
