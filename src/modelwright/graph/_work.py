"""Which of several nodes does the work, where a runtime made one operator of them."""

from __future__ import annotations

_PRODUCTS = ("Conv", "MatMul", "Gemm", "Attention", "Einsum", "LSTM", "GRU", "RNN")
_ELEMENTWISE = (
    "Add Sub Mul Div Pow Sqrt Exp Log Neg Abs Min Max Clip Relu LeakyRelu PRelu Elu Selu Sigmoid HardSigmoid HardSwish "
    "Tanh Erf Gelu FastGelu QuickGelu BiasGelu Softplus Mish Where Equal Greater Less Not And Or Round Floor Ceil "
    "Reciprocal BatchNormalization"
)
_FORM = (
    "Reshape Transpose Squeeze Unsqueeze Flatten Identity Cast Expand Shape Slice Concat Split Gather Constant "
    "ConstantOfShape Dropout Pad QuantizeLinear DequantizeLinear DynamicQuantizeLinear"
)
_RANK = {**dict.fromkeys(_ELEMENTWISE.split(), 2), **dict.fromkeys(_FORM.split(), 3)}


def work_rank(op_type: str) -> int:
    """0 for sums of products, 2 for arithmetic on single elements, 3 for changes of form or type, 1 for all else.

    The lowest names what a fused operator does.
    """
    return 0 if any(word in op_type for word in _PRODUCTS) else _RANK.get(op_type, 1)
