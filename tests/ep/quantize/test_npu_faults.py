"""Three things of which QNN's HTP compiler makes something else in 16 bits: builds keep clear of them.

Each model here was written after a family that failed on the simulator (Swin, MobileViT), cut down to the fault.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import modelwright as mw
from modelwright.store import Store

pytest.importorskip("onnxruntime_qnn")


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


@pytest.mark.parametrize("made", [pooled, faint, narrow])
def test_what_the_compiler_gets_wrong_is_built_so_that_it_does_not(tmp_path, made):
    source = made()
    onnx.save(source, tmp_path / "model.onnx")
    sizes = [dim.dim_value for dim in source.graph.input[0].type.tensor_type.shape.dim]
    rows = np.random.default_rng(0).normal(size=(16, *sizes[1:])).astype(np.float32)
    np.savez(tmp_path / "rows.npz", x=rows)
    with Store(tmp_path / "store") as store:
        built = mw.build(
            tmp_path / "model.onnx", "qnn-npu", precision="w8a16", data=str(tmp_path / "rows.npz"), store=store
        )
    checked = built[0].components[0].check
    assert checked.passed
    assert checked.sqnr_db > 30
