"""Measured precision: bits of weights and activations, read from the graph and never from a file name."""

from __future__ import annotations

from modelwright._dataclass import dataclass
from modelwright.graph._census import Census, ElementKind, Tally, take_census
from modelwright.graph._epcontext import EP_CONTEXT
from modelwright.graph._load import Graph

# A label names one width. It is given when nearly all of what it speaks about has that width.
_NEARLY_ALL = 0.9
# Float leftovers (embeddings, norms) make a quantized model "mixed" only when they are the larger part.
_LARGER_PART = 0.5
_COMPILED = "the weights are inside the compiled blob of an EPContext node; measure the model it was made from"
_FLOAT_WORDS = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}


@dataclass(frozen=True)
class TypeShare:
    """Tensors of one element type. `dynamic` activations are quantized while the model runs."""

    dtype: str
    bits: int
    quantized: bool
    dynamic: bool
    tensors: int
    elements: int


@dataclass(frozen=True)
class Precision:
    """What was counted, and the label that follows from it; without a label, `reason` says why.

    `weights` counts elements of matrices by the width they are computed with; `activations` counts the
    activation tensors that quantization touches. `quantized_share` is the quantized part of `weights`.
    """

    label: str | None
    reason: str | None
    weight_bits: int | None
    activation_bits: int | None
    quantized: bool | None
    quantized_share: float | None
    granularity: tuple[str, ...]
    weights: tuple[TypeShare, ...]
    activations: tuple[TypeShare, ...]


def precision(graph: Graph) -> Precision:
    """Measure it; not for a compiled model, whose boundary Q/DQ nodes say nothing about the inside."""
    if any(node.op_type == EP_CONTEXT for body in graph.bodies for node in body.nodes):
        return Precision(None, _COMPILED, None, None, None, None, (), (), ())
    census = take_census(graph.bodies)
    weights, activations = _shares(census.weights), _shares(census.activations)
    share = _quantized_share(weights)
    label, reason = _label(weights, activations, share)
    return Precision(
        label=label,
        reason=reason,
        weight_bits=_dominant_bits(weights, share),
        activation_bits=_one_width(activations, "tensors"),
        quantized=_is_quantized(census),
        quantized_share=share,
        granularity=tuple(sorted(census.granularity)),
        weights=weights,
        activations=activations,
    )


def _shares(tallies: dict[ElementKind, Tally]) -> tuple[TypeShare, ...]:
    found = [
        TypeShare(kind.dtype, kind.bits, kind.quantized, kind.dynamic, tally.tensors, tally.elements)
        for kind, tally in tallies.items()
    ]
    return tuple(sorted(found, key=lambda item: (-item.elements, -item.tensors, item.dtype)))


def _is_quantized(census: Census) -> bool:
    return any(kind.quantized for kind in (*census.weights, *census.activations))


def _quantized_share(weights: tuple[TypeShare, ...]) -> float | None:
    total = sum(item.elements for item in weights)
    return sum(item.elements for item in weights if item.quantized) / total if total else None


def _label(
    weights: tuple[TypeShare, ...], activations: tuple[TypeShare, ...], share: float | None
) -> tuple[str | None, str | None]:
    if share is None:
        touched = "activations are quantized, but there" if activations else "there"
        return None, f"{touched} are no float or quantized weights to measure"
    quantized = tuple(item for item in weights if item.quantized)
    if not quantized and not activations:
        return _float_label(weights), None
    if not quantized:
        return f"mixed({_list(weights, 'elements', '')}, {_list(activations, 'tensors', 'a')})", None
    if not activations:
        return None, "the weights are quantized, and the graph does not tell how wide what they are multiplied with is"
    return _quantized_label(weights, quantized, activations, share), None


def _quantized_label(
    weights: tuple[TypeShare, ...], quantized: tuple[TypeShare, ...], activations: tuple[TypeShare, ...], share: float
) -> str:
    weight_bits = _one_width(quantized, "elements") if share >= _LARGER_PART else None
    activation_bits = _one_width(activations, "tensors")
    if weight_bits is None or activation_bits is None:
        shown = weights if share < _LARGER_PART else quantized
        return f"mixed({_list(shown, 'elements', 'w')}, {_list(activations, 'tensors', 'a')})"
    if all(item.dynamic for item in activations):
        return f"dynamic int{weight_bits}"
    return f"w{weight_bits}a{activation_bits}"


def _float_label(weights: tuple[TypeShare, ...]) -> str:
    total = sum(item.elements for item in weights)
    top = weights[0]
    return _word(top, "") if top.elements >= _NEARLY_ALL * total else f"mixed({_list(weights, 'elements', '')})"


def _one_width(shares: tuple[TypeShare, ...], by: str) -> int | None:
    """The width that nearly all have; dynamic and static ones never count as the same."""
    groups: dict[tuple[int, bool], int] = {}
    for item in shares:
        key = item.bits, item.dynamic
        groups[key] = groups.get(key, 0) + getattr(item, by)
    if not groups:
        return None
    (bits, _), most = max(groups.items(), key=lambda pair: pair[1])
    return bits if most >= _NEARLY_ALL * sum(groups.values()) else None


def _dominant_bits(weights: tuple[TypeShare, ...], share: float | None) -> int | None:
    if share is None:
        return None
    quantized = tuple(item for item in weights if item.quantized)
    return _one_width(quantized if share >= _LARGER_PART else weights, "elements")


def _list(shares: tuple[TypeShare, ...], by: str, letter: str) -> str:
    totals: dict[str, int] = {}
    for item in shares:
        word = _word(item, letter)
        totals[word] = totals.get(word, 0) + getattr(item, by)
    if len(totals) == 1:
        return next(iter(totals))
    total = sum(totals.values()) or 1
    ordered = sorted(totals.items(), key=lambda pair: -pair[1])
    return " + ".join(f"{word} {100 * count / total:.0f}%" for word, count in ordered)


def _word(item: TypeShare, letter: str) -> str:
    """`w8`, `a16`, `fp32`; float activations of weight-only models are `a32`, `a16`."""
    if item.quantized or letter == "a":
        return f"{'dynamic ' if item.dynamic else ''}{letter}{item.bits}"
    return _FLOAT_WORDS.get(item.dtype, item.dtype)
