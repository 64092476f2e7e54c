"""Each pattern is found where it is and not where something only looks like it."""

import onnx.parser
import pytest

from modelwright.graph import load
from modelwright.knowledge import PATTERNS, pattern_counts
from modelwright.stages.optimize import find_pass
from support import models

CONSTANTS = """
    float two = {2.0}, float root = {1.4142135}, float inverse = {0.70710678}, float one = {1.0}, float half = {0.5},
    float eps = {0.00001}, float cubic = {0.044715}, float quick = {1.702}, float pi = {0.7978845},
    float[2] bias = {1.0, 2.0}, float[2,2] w = {1.0, 2.0, 3.0, 4.0}, float[2,1,1] channels = {1.0, 2.0},
    float[2,2,1,1] k = {1.0, 2.0, 3.0, 4.0}, float[2] var = {1.0, 1.0},
    int64[1] zero = {0}, int64[1] last = {1}, int64[1] far = {9223372036854775807}, int64[2] ones = {1, 1},
    int64[2] wide = {2, 2}, int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}
"""
ERF = "d = Div(x, root) e = Erf(d) p = Add(e, one) m = Mul(x, p) y = Mul(m, half)"
ROOT = "q = ReduceMean<axes=[-1]>(s) a = Add(q, eps) r = Sqrt(a)"
NORM = f"m = ReduceMean<axes=[-1]>(v) d = Sub(v, m) s = Pow(d, two) {ROOT}"
RMS = f"s = Pow(x, two) {ROOT} y = Div(x, r)"

CASES = {
    "gelu_fusion": (ERF, ERF.replace("Div(x, root)", "Div(x, two)")),
    "gelu_single": (ERF.replace("Div(x, root)", "Mul(x, inverse)"), "d = Div(x, root) y = Erf(d)"),
    "bias_gelu_fusion": (f"x1 = Add(x, bias) {ERF.replace('x,', 'x1,')}", f"x1 = Add(x, z) {ERF.replace('x,', 'x1,')}"),
    "fast_gelu_fusion": (
        "c = Mul(x, x) c3 = Mul(c, x) t = Mul(c3, cubic) u = Add(x, t) v = Mul(u, pi) y = Tanh(v)",
        "c = Pow(x, two) v = Mul(c, pi) y = Tanh(v)",
    ),
    "quick_gelu_fusion": (
        "a = Mul(x, quick) g = Sigmoid(a) y = Mul(x, g)",
        "a = Mul(x, quick) g = Sigmoid(a) y = Mul(z, g)",
    ),
    "layer_norm_fusion": (
        f"v = Relu(x) {NORM} y = Div(d, r)",
        "v = Relu(x) m = ReduceMean<axes=[-1]>(z) d = Sub(v, m) y = Pow(d, two)",
    ),
    "simplified_layer_norm_fusion": (RMS, f"v = Relu(x) {NORM} y = Div(d, r)"),
    "fuse_rmsnorm": (RMS.replace("Pow(x, two)", "Mul(x, x)"), "s = Pow(x, two) y = ReduceMean<axes=[-1]>(s)"),
    "skip_layer_norm_fusion": (
        "v = Add(x, z) n = LayerNormalization(v, bias) y = Add(v, n)",
        "v = Add(x, bias) y = LayerNormalization(v, bias)",
    ),
    "attention_fusion": (
        "t = Transpose<perm=[1,0]>(z) s = MatMul(x, t) q = Div(s, two) p = Softmax(q) y = MatMul(p, z)",
        "s = MatMul(x, w) y = Softmax(s)",
    ),
    "bias_softmax_fusion": ("s = Add(x, z) y = Softmax(s)", "s = Add(x, one) y = Softmax(s)"),
    "matmul_add_fusion": ("m = MatMul(x, w) y = Add(m, bias)", "m = MatMul(x, w) y = Add(m, z)"),
    "matmul_add_gemm": ("m = MatMul(x, w) y = Add(bias, m)", "m = MatMul(x, z) y = Add(m, bias)"),
    "matmul_activation_fusion": ("m = MatMul(x, w) y = Relu(m)", "m = MatMul(x, w) r = Relu(m) y = Add(m, r)"),
    "matmul_transpose_fusion": (
        "t = Transpose<perm=[1,0]>(z) y = MatMul(x, t)",
        "t = Transpose<perm=[0,1]>(z) y = MatMul(x, t)",
    ),
    "matmul_scale_fusion": ("m = MatMul(x, w) y = Mul(m, half)", "m = MatMul(x, w) y = Mul(m, z)"),
    "conv_bn_fusion": (
        "c = Conv(i, k) o = BatchNormalization(c, bias, bias, bias, var)",
        "c = Conv(i, k) b = BatchNormalization(c, bias, bias, bias, var) o = Add(c, b)",
    ),
    "conv_add_fusion": ("c = Conv(i, k) o = Add(c, channels)", "c = Conv(i, k) o = Add(c, i)"),
    "conv_mul_fusion": ("c = Conv(i, k) o = Mul(c, channels)", "c = Conv(i, k) o = Mul(c, i)"),
    "conv_activation_fusion": ("c = Conv(i, k) o = Relu(c)", "c = Conv(i, k) r = Relu(c) o = Add(c, r)"),
    "conv_add_activation_fusion": (
        "c = Conv(i, k) s = Add(c, i) o = Relu(s)",
        "c = Conv(i, k) s = Add(c, i) r = Relu(s) o = Add(s, r)",
    ),
    "pad_fusion": ("p = Pad(i, pads) o = Conv(p, k)", "p = Pad(i, pads) o = Relu(p)"),
    "gemm_activation_fusion": ("g = Gemm(x, w, bias) y = Relu(g)", "r = Relu(x) y = Gemm(r, w, bias)"),
    "gemm_sum_fusion": ("g = Gemm(x, w) y = Add(g, z)", "g = Gemm(x, w, bias) y = Add(g, z)"),
    "gemm_transpose_fusion": ("t = Transpose<perm=[1,0]>(x) y = Gemm(t, w)", "g = Gemm(x, w) y = Relu(g)"),
    "slice_elimination": ("y = Slice(x, zero, far, zero)", "y = Slice(x, zero, last, zero)"),
    "expand_elimination": ("y = Expand(x, ones)", "y = Expand(x, wide)"),
    "unsqueeze_elimination": ("u = Unsqueeze(bias, zero) y = Add(x, u)", "u = Unsqueeze(x, zero) y = Squeeze(u, zero)"),
    "concat_slice_elimination": (
        "c = Concat<axis=0>(x, z) y = Slice(c, zero, last, zero)",
        "c = Concat<axis=0>(x, z) y = Relu(c)",
    ),
    "transpose_optimizer": (
        "t = Transpose<perm=[1,0]>(x) r = Relu(t) y = Transpose<perm=[1,0]>(r)",
        "t = Transpose<perm=[1,0]>(x) m = MatMul(t, w) y = Transpose<perm=[1,0]>(m)",
    ),
    "high_rank_transpose": (
        "a = Reshape(x, wide) t = Transpose<perm=[0,2,1,3,4]>(a) y = Reshape(t, wide)",
        "a = Reshape(x, wide) t = Transpose<perm=[0,2,1,3]>(a) y = Reshape(t, wide)",
    ),
}


def counted(body, folder):
    out = "o" if " o = " in f" {body}" else "y"
    head = '<ir_version: 8, opset_import: ["" : 17]> g'
    text = f"{head} (float[2,2] x, float[2,2] z, float[1,2,4,4] i) => (float[?] {out}) <{CONSTANTS}> {{ {body} }}"
    proto = onnx.parser.parse_model(text)
    return pattern_counts(load(models.save(proto, folder)))


@pytest.mark.parametrize("name", [pattern.name for pattern in PATTERNS])
def test_a_pattern_is_found_where_it_is_and_only_there(name, tmp_path):
    there, other = CASES[name]
    (tmp_path / "there").mkdir()
    (tmp_path / "other").mkdir()
    assert counted(there, tmp_path / "there").get(name) == 1
    assert name not in counted(other, tmp_path / "other")


def test_there_are_as_many_as_were_published_and_their_passes_exist():
    assert len({pattern.name for pattern in PATTERNS}) == 31
    for pattern in PATTERNS:
        assert [find_pass(name).name for name in pattern.passes] == list(pattern.passes)
