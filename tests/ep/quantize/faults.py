"""Small models of which QNN's HTP compiler makes something else in 16 bits, each cut down to the fault."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
from onnx import numpy_helper


def model(text: str, **stored: np.ndarray) -> onnx.ModelProto:
    found = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> agraph {text}')
    found.graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in stored.items())
    return found


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=shape, scale=0.3).astype(np.float32)


def pooled() -> onnx.ModelProto:
    """As `AdaptiveAvgPool1d` is exported, which is how Swin ends."""
    return model(
        "(float[1,16,24] x) => (float[1,24,1,1] y) { p = MatMul(x, w) t = Transpose<perm=[0,2,1]>(p) "
        "u = Unsqueeze(t, a) y = ReduceMean(u, axes) }",
        w=weights(24, 24),
        a=np.array([2]),
        axes=np.array([-1, -2]),
    )


def faint() -> onnx.ModelProto:
    """Attention that hardly differs from one token to the next, with a Reshape before its Softmax."""
    return model(
        "(float[1,16,24] x) => (float[1,16,24] y) { p = MatMul(x, w) t = Transpose<perm=[0,2,1]>(x) q = MatMul(p, t) "
        "r = Reshape(q, four) s = Softmax<axis=-1>(r) b = Reshape(s, three) y = MatMul(b, x) }",
        w=weights(24, 24) * np.float32(1e-4),
        four=np.array([1, 1, 16, 16]),
        three=np.array([1, 16, 16]),
    )


def narrow() -> onnx.ModelProto:
    """A Swish of few channels in several batches behind a normalization, as in a small MobileViT."""
    return model(
        "(float[4,16,24] x) => (float[4,16,32] y) { n = LayerNormalization(x, g, z) p = MatMul(n, w) "
        "s = Sigmoid(p) y = Mul(s, p) }",
        g=np.ones(24, np.float32),
        z=np.zeros(24, np.float32),
        w=weights(24, 32),
    )
