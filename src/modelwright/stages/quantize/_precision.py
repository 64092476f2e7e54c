"""The precision words, once: what each one stands for, and which ones cannot be made."""

from __future__ import annotations

import functools
import itertools
from typing import Literal

from modelwright._dataclass import dataclass
from modelwright.errors import InputError, did_you_mean
from modelwright.stages.quantize._params import QuantizeParams

StepKind = Literal["none", "fp16", "dynamic", "static", "int4"]


@dataclass(frozen=True)
class Step:
    """One transformation. `weights` and `activations` are element types of the produced graph."""

    label: str
    kind: StepKind
    weights: str
    activations: str
    weight_bits: int
    activation_bits: int


# Why these types. Weights are signed and symmetric: the CPU's fast integer kernels want them, and the QNN HTP
# compiler claims them per channel in Conv, Gemm and MatMul (16-bit ones from htp_arch 73 on). Activations are
# unsigned because 16-bit activations must be for HTP.
STEPS: dict[str, Step] = {
    step.label: step
    for step in (
        Step("fp32", "none", "float32", "float32", 32, 32),
        Step("fp16", "fp16", "float16", "float16", 16, 16),
        Step("dynamic", "dynamic", "int8", "uint8", 8, 8),
        Step("w8a8", "static", "int8", "uint8", 8, 8),
        Step("w8a16", "static", "int8", "uint16", 8, 16),
        Step("w16a16", "static", "int16", "uint16", 16, 16),
        Step("w16a8", "static", "int16", "uint8", 16, 8),
        Step("w4a32", "int4", "int4", "float32", 4, 32),
    )
}
ALIASES = {"int8": "w8a8", "int16": "w16a16", "int4": "w4a32", "w4a16": "w4a32+fp16"}
REFUSED = {
    "w4a8": "no kernel multiplies 4-bit weights with quantized 8-bit activations, so it would be w4a32 by another name",
    "bf16": "onnxruntime's CPU provider has no bfloat16 kernels, so the result could not be checked",
    "fp8": "no execution provider of the catalogue runs float8 graphs",
}
# fp16 turns what is still float into float16; nothing else can follow a quantizing step.
_CHAINS = {("static", "fp16"), ("int4", "fp16")}


@functools.lru_cache(256)
def steps_of(precision: str) -> tuple[Step, ...]:
    """`w8a16` is one step, `w8a16+fp16` two. Words that cannot be made true are refused with the reason."""
    words = [word.strip().lower() for word in precision.split("+")]
    expanded = [part for word in words for part in ALIASES.get(word, word).split("+")]
    found = tuple(_step(word) for word in expanded)
    for before, after in itertools.pairwise(found):
        if (before.kind, after.kind) not in _CHAINS:
            raise InputError(
                f"{after.label} cannot follow {before.label}",
                cause="only the float rest of a quantized model can be changed again",
                fix="Chains that work: a static precision or int4, then fp16 (w8a8+fp16, int4+fp16).",
            )
    return found


def canonical(precision: str) -> str:
    """The one spelling of a precision: `int8` is `w8a8`, `int4+fp16` is `w4a16`."""
    joined = "+".join(step.label for step in steps_of(precision))
    return "w4a16" if joined == ALIASES["w4a16"] else joined


def integer_products(params: QuantizeParams) -> bool:
    """Will CPU kernels multiply 8-bit weights with 8-bit activations? Wider ones are computed in float."""
    step = steps_of(params.precision)[0]
    own = {item.dtype for item in params.overrides}
    weights, activations = step.weights == "int8", step.activations == "uint8"
    return (weights and (activations or bool(own & {"int8", "uint8"}))) or (activations and "int8" in own)


def reduces_range(params: QuantizeParams) -> bool:
    """Do the weights keep to what cannot saturate?"""
    return integer_products(params) if params.reduce_range is None else params.reduce_range


def _step(word: str) -> Step:
    if word in REFUSED:
        raise InputError(
            f"{word} cannot be produced", cause=REFUSED[word], fix=f"Choose one of {', '.join(precision_words())}."
        )
    if word not in STEPS:
        raise InputError(
            f"{word or 'an empty word'} is not a precision",
            cause=f"the precisions are {', '.join(precision_words())}",
            fix=(
                did_you_mean(word, precision_words()) or "Choose one of them, or a chain such as w8a16+fp16."
            ).capitalize(),
        )
    return STEPS[word]


def precision_words() -> tuple[str, ...]:
    """Every precision that can be asked for."""
    return (*STEPS, *ALIASES)
