"""To which class of architectures a graph belongs, by its operators: no finding's scope rests on somebody's word."""

from __future__ import annotations

from collections.abc import Mapping

FAMILIES = ("recurrent", "vision transformer", "transformer", "convolutional", "dense", "other")
_RECURRENT = ("LSTM", "GRU", "RNN")
_CONVOLUTIONS = ("Conv", "FusedConv", "QLinearConv", "ConvInteger")
_PRODUCTS = ("MatMul", "Gemm", "FusedMatMul", "FusedGemm", "QLinearMatMul", "MatMulInteger", "MatMulNBits")
_MOVES = ("Transpose", "FusedMatMul")
_ATTENTION = ("Attention", "MultiHeadAttention", "GroupQueryAttention", "QAttention")


def family_of(operators: Mapping[str, int]) -> str:
    """`operators` by name, with or without their domain."""
    names = {name.rpartition(".")[2] for name in operators}
    convolves = bool(names & set(_CONVOLUTIONS))
    products = sum(count for name, count in operators.items() if name.rpartition(".")[2] in _PRODUCTS)
    # A softmax between two products of moved tensors, not the one behind a classifier.
    softmax = operators.get("Softmax", 0)
    attends = bool(names & set(_ATTENTION)) or (0 < 2 * softmax <= products and bool(names & set(_MOVES)))
    if names & set(_RECURRENT):
        return "recurrent"
    if attends:
        return "vision transformer" if convolves else "transformer"
    if convolves:
        return "convolutional"
    return "dense" if products else "other"
