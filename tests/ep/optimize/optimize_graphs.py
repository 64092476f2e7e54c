"""For every pass, a small graph on which it fires."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

Array = np.ndarray


def graph(
    text: str, opset: int = 17, domains: tuple[str, ...] = (), **weights: Array | tuple[int, ...]
) -> onnx.ModelProto:
    """`text` is `(inputs) => (outputs) { nodes }`; weights given as shapes get seeded values."""
    imports = ", ".join([f'"" : {opset}', *(f'"{domain}" : 1' for domain in domains)])
    model = parser.parse_model(f"<ir_version: 8, opset_import: [{imports}]> g {text}")
    generator = np.random.default_rng(7)
    for name, value in weights.items():
        array = value if isinstance(value, np.ndarray) else generator.standard_normal(value).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def f32(*values: float) -> Array:
    return np.array(values[0] if len(values) == 1 else values, np.float32)


def i64(*values: int) -> Array:
    return np.array(values, np.int64)


X8 = "(float[1,3,8,8] x) => (float[1,4,8,8] y)"
CONV = "c = Conv<pads=[1,1,1,1]>(x, w, b)"


def conv(tail: str, **weights: Array | tuple[int, ...]) -> onnx.ModelProto:
    return graph(f"{X8} {{ {CONV} {tail} }}", w=(4, 3, 3, 3), b=(4,), **weights)


def simple(tail: str, shape: str = "2,4", opset: int = 17, **weights: Array | tuple[int, ...]) -> onnx.ModelProto:
    return graph(f"(float[{shape}] x) => (float[{shape}] y) {{ {tail} }}", opset, **weights)


def gelu(opset: int, bias: bool = False) -> onnx.ModelProto:
    head = "h = Add(x, bias)" if bias else "h = Sigmoid(x)"
    weights = {"bias": (8,)} if bias else {}
    return simple(
        f"{head} d = Div(h, root) e = Erf(d) a = Add(e, unit) m = Mul(h, a) y = Mul(m, half)",
        "1,4,8",
        opset,
        root=f32(math.sqrt(2)),
        unit=f32(1.0),
        half=f32(0.5),
        **weights,
    )


def fast_gelu() -> onnx.ModelProto:
    return simple(
        "h = Sigmoid(x) p = Pow(h, three) q = Mul(p, c1) s = Add(h, q) t = Mul(s, c2) u = Tanh(t) "
        "v = Add(u, one1) m = Mul(h, half) g = Mul(m, v) y = Relu(g)",
        "1,4,8",
        three=f32(3.0),
        c1=f32(0.044715),
        c2=f32(math.sqrt(2 / math.pi)),
        one1=f32(1.0),
        half=f32(0.5),
    )


LAYER_NORM = (
    "mean = ReduceMean<axes=[-1], keepdims=1>({0}) sub = Sub({0}, mean) "
    "sq = Pow(sub, two) var = ReduceMean<axes=[-1], keepdims=1>(sq) "
    "vare = Add(var, eps) std = Sqrt(vare) div = Div(sub, std) mul = Mul(div, gamma) y = Add(mul, beta)"
)
LN_WEIGHTS = {"two": f32(2.0), "eps": f32(1e-5), "gamma": (8,), "beta": (8,)}


def layer_norm(opset: int = 17) -> onnx.ModelProto:
    return simple(LAYER_NORM.format("x"), "1,4,8", opset, **LN_WEIGHTS)


def skip_layer_norm(bias: bool = False) -> onnx.ModelProto:
    head = "m = MatMul(z, w) n = Add(m, bias)" if bias else "n = Mul(z, z)"
    extra = {"w": (8, 8), "bias": (8,)} if bias else {}
    text = (
        f"(float[1,4,8] x, float[1,4,8] z) => (float[1,4,8] y) {{ {head} s = Add(x, n) "
        "y = LayerNormalization<axis=-1, epsilon=1e-5>(s, gamma, beta) }"
    )
    return graph(text, gamma=(8,), beta=(8,), **extra)


RMS_NORM = (
    "sq = Pow({0}, two) var = ReduceMean<axes=[-1], keepdims=1>(sq) vare = Add(var, eps) std = Sqrt(vare) "
    "inv = Div(unit, std) n = Mul({0}, inv) y = Mul(gamma, n)"
)
RMS_WEIGHTS = {"two": f32(2.0), "eps": f32(1e-5), "unit": f32(1.0), "gamma": (8,)}


def rms_norm() -> onnx.ModelProto:
    plain = (
        "sq = Pow(x, two) var = ReduceMean<axes=[-1], keepdims=1>(sq) vare = Add(var, eps) "
        "std = Sqrt(vare) n = Div(x, std) y = Mul(n, gamma)"
    )
    return simple(plain, "1,4,8", two=f32(2.0), eps=f32(1e-5), gamma=(8,))


def skip_rms_norm() -> onnx.ModelProto:
    text = "(float[1,4,8] x, float[1,4,8] z) => (float[1,4,8] y) { n0 = Mul(z, z) s = Add(x, n0) "
    return graph(text + RMS_NORM.format("s") + " }", **RMS_WEIGHTS)


def qdq_pairs(tail: str, shape: str = "1,4,8,8", **weights: Array | tuple[int, ...]) -> onnx.ModelProto:
    common = {"s": f32(0.05), "z": np.array(128, np.uint8), "s2": f32(0.04), "z2": np.array(0, np.uint8)}
    used = {name: value for name, value in common.items() if f" {name}" in tail}
    return simple(tail, shape, **used, **weights)


def quantized_conv(signed: bool = False) -> onnx.ModelProto:
    kind = np.int8 if signed else np.uint8
    zero = np.array(0 if signed else 128, kind)
    tail = (
        "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) wd = DequantizeLinear(w, ws, wz) "
        "c = Conv<pads=[1,1,1,1]>(d, wd) qc = QuantizeLinear(c, s, z) y = DequantizeLinear(qc, s, z)"
    )
    weights = np.random.default_rng(3).integers(-100, 100, (4, 4, 3, 3)).astype(np.int8)
    return simple(tail, "1,4,8,8", s=f32(0.05), z=zero, w=weights, ws=f32(0.01), wz=np.array(0, np.int8))


def integer_matmul() -> onnx.ModelProto:
    weights = np.random.default_rng(3).integers(-100, 100, (8, 8)).astype(np.int8)
    tail = (
        "q, qs, qz = DynamicQuantizeLinear(x) i = MatMulInteger(q, w, qz, wz) f = Cast<to=1>(i) "
        "sc = Mul(qs, ws) y = Mul(f, sc)"
    )
    return simple(tail, "4,8", w=weights, wz=np.array(0, np.int8), ws=f32(0.01))


def focus() -> onnx.ModelProto:
    """The first layer of YOLOv5: four strided slices, concatenated."""
    text = "(float[1,3,8,8] x) => (float[1,12,4,4] y) { "
    weights = {"axes": i64(2, 3), "step": i64(2, 2), "end": i64(8, 8)}
    for index, (row, column) in enumerate(((0, 0), (1, 0), (0, 1), (1, 1))):
        weights[f"s{index}"] = i64(row, column)
        text += f"p{index} = Slice(x, s{index}, end, axes, step) "
    return graph(text + "y = Concat<axis=1>(p0, p1, p2, p3) }", **weights)


def bert_layer(embeddings: bool = False, opset: int = 17) -> onnx.ModelProto:
    """One encoder layer as the exporters of the BERT years wrote it: 2 heads of 4.

    onnxruntime had LayerNormalization long before ONNX, and its own attention fusion knows only that one.
    """

    def unsqueeze(value: str, axis: int) -> str:
        return f"Unsqueeze({value}, ax{axis})" if opset >= 13 else f"Unsqueeze<axes=[{axis}]>({value})"

    text = ""
    for name in "qkv":
        text += f"{name}m = MatMul(h, w{name}) {name}a = Add({name}m, b{name}) {name}r = Reshape({name}a, rq) "
        perm = "0,2,3,1" if name == "k" else "0,2,1,3"
        text += f"{name}t = Transpose<perm=[{perm}]>({name}r) "
    text += (
        "qk = MatMul(qt, kt) sc = Div(qk, root) "
        f"u1 = {unsqueeze('mask', 1)} u2 = {unsqueeze('u1', 2)} mf = Cast<to=1>(u2) "
        "ms = Sub(unit, mf) mm = Mul(ms, low) "
        "sm = Add(sc, mm) p = Softmax<axis=3>(sm) ctx = MatMul(p, vt) ct = Transpose<perm=[0,2,1,3]>(ctx) "
        "cr = Reshape(ct, back) om = MatMul(cr, wo) oa = Add(om, bo) res = Add(oa, h) "
        "y = LayerNormalization<axis=-1, epsilon=1e-12>(res, gamma, beta) }"
    )
    weights: dict[str, Array | tuple[int, ...]] = {f"w{name}": (8, 8) for name in "qkvo"}
    weights |= {f"b{name}": (8,) for name in "qkvo"}
    weights |= {"rq": i64(0, 0, 2, 4), "back": i64(0, 0, 8), "root": f32(2.0)}
    if opset >= 13:
        weights |= {"ax1": i64(1), "ax2": i64(2)}
    weights |= {"unit": f32(1.0), "low": f32(-10000.0), "gamma": (8,), "beta": (8,)}
    if not embeddings:
        head = "(float[1,4,8] x, int64[1,4] mask) => (float[1,4,8] y) { h = LayerNormalization<axis=-1>(x, g0, b0) "
        return graph(head + text, opset, g0=(8,), b0=(8,), **weights)
    places = "nu = Unsqueeze(n, i0) places = Slice(range, i0, nu, i1, i1)"
    weights |= {"range": np.arange(16, dtype=np.int64)[None], "i0": i64(0), "i1": i64(1)}
    head = (
        "(int64[1,4] ids, int64[1,4] types, int64[1,4] mask) => (float[1,4,8] y) { we = Gather(word, ids) "
        f"te = Gather(kind, types) sh = Shape(ids) n = Gather(sh, one) {places} pe = Gather(pos, places) "
        "a1 = Add(we, te) a2 = Add(a1, pe) h = LayerNormalization<axis=-1, epsilon=1e-12>(a2, g0, b0) "
    )
    weights |= {"word": (32, 8), "kind": (2, 8), "pos": (16, 8), "g0": (8,), "b0": (8,), "one": np.array(1, np.int64)}
    return graph(head + text, opset, **weights)


def label_encoders() -> onnx.ModelProto:
    nodes = [
        helper.make_node(
            "LabelEncoder",
            ["x"],
            ["a"],
            domain="ai.onnx.ml",
            keys_strings=["a", "b"],
            values_strings=["c", "d"],
            default_string="c",
        ),
        helper.make_node(
            "LabelEncoder",
            ["a"],
            ["y"],
            domain="ai.onnx.ml",
            keys_strings=["c", "d"],
            values_int64s=[4, 5],
            default_int64=-1,
        ),
    ]
    made = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.STRING, [2])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, [2])],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 4)]
    return helper.make_model(made, opset_imports=imports, ir_version=8)


def masked_attention(filler: float = -math.inf) -> onnx.ModelProto:
    """Scores plus a causal mask that never hides a whole row, with the guard torch puts behind softmax."""
    mask = np.triu(np.full((4, 4), filler, np.float32), 1)
    tail = "s = Add(x, mask) p = Softmax<axis=-1>(s) bad = IsNaN(p) y = Where(bad, zero, p)"
    return simple(tail, "2,4,4", mask=mask, zero=f32(0.0))


def four_bit_matmul() -> onnx.ModelProto:
    packed = np.random.default_rng(3).integers(0, 255, (16, 1, 16)).astype(np.uint8)
    nodes = [
        helper.make_node(
            "MatMulNBits", ["x", "w", "s"], ["m"], domain="com.microsoft", K=32, N=16, bits=4, block_size=32
        ),
        helper.make_node("Add", ["m", "b"], ["y"]),
    ]
    made = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 16])],
        [
            numpy_helper.from_array(packed, "w"),
            numpy_helper.from_array(np.full(16, 0.01, np.float32), "s"),
            numpy_helper.from_array(np.ones(16, np.float32), "b"),
        ],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(made, opset_imports=imports, ir_version=8)


def fused(
    op_type: str, weights: Mapping[str, Array], shape: list[int], out: list[int], **attributes: object
) -> onnx.ModelProto:
    made = helper.make_graph(
        [helper.make_node(op_type, ["x", *weights], ["y"], domain="com.microsoft", **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(made, opset_imports=imports, ir_version=8)


def _random(*shape: int) -> Array:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


FIRES: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "constant_folding": lambda: simple("a = Add(c, c) y = Mul(x, a)", c=(4,)),
    "identity_elimination": lambda: simple("a = Identity(x) y = Relu(a)"),
    "dropout_elimination": lambda: simple("a = Dropout(x) y = Relu(a)"),
    "cast_elimination": lambda: simple("a = Cast<to=1>(x) y = Relu(a)"),
    "cast_chain_elimination": lambda: simple("a = Cast<to=11>(x) b = Cast<to=7>(a) c = Cast<to=1>(b) y = Relu(c)"),
    "slice_elimination": lambda: simple(
        "e = Exp(x) a = Slice(e, st, en, ax) y = Relu(a)", st=i64(0), en=i64(2**63 - 1), ax=i64(1)
    ),
    "expand_elimination": lambda: simple("e = Exp(x) a = Expand(e, sh) y = Relu(a)", sh=i64(2, 4)),
    "unsqueeze_elimination": lambda: simple("a = Unsqueeze<axes=[0]>(c) y = Mul(x, a)", opset=11, c=(4,)),
    "noop_elimination": lambda: simple("e = Exp(x) a = Add(e, zero) y = Relu(a)", zero=f32(0.0)),
    "pre_shape_node_elimination": lambda: graph(
        "(float[n,4] x) => (int64[2] y, float[n,4] z) { a = Cast<to=11>(x) y = Shape(a) z = Relu(x) }"
    ),
    "constant_sharing": lambda: simple("a = Add(x, c1) y = Mul(a, c2)", c1=f32(2.0), c2=f32(2.0)),
    "common_subexpression_elimination": lambda: simple("a = Exp(x) b = Exp(x) y = Add(a, b)"),
    "double_qdq_pairs_remover": lambda: qdq_pairs(
        "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) "
        "q2 = QuantizeLinear(d, s2, z2) y = DequantizeLinear(q2, s2, z2)"
    ),
    "conv_add_fusion": lambda: conv("y = Add(c, k)", k=(4, 1, 1)),
    "conv_mul_fusion": lambda: conv("y = Mul(c, k)", k=(4, 1, 1)),
    "conv_bn_fusion": lambda: conv(
        "y = BatchNormalization(c, g, h, m, v)", g=(4,), h=(4,), m=(4,), v=np.full(4, 0.7, np.float32)
    ),
    "pad_fusion": lambda: graph(
        "(float[1,3,8,8] x) => (float[1,4,8,8] y) { p = Pad(x, pads) y = Conv<pads=[0,0,0,0]>(p, w) }",
        w=(4, 3, 3, 3),
        pads=i64(0, 0, 1, 1, 0, 0, 1, 1),
    ),
    "relu_clip_fusion": lambda: simple("a = Relu(x) y = Clip(a, lo, hi)", lo=f32(-1.0), hi=f32(6.0)),
    "div_mul_fusion": lambda: graph(
        "(float[2,4] x, float[2,4] z) => (float[2,4] y) { e = Exp(x) a = Div(one, e) y = Mul(a, z) }", one=f32(1.0)
    ),
    "not_where_fusion": lambda: graph(
        "(float[2,4] x, bool[2,4] c) => (float[2,4] y) { n = Not(c) y = Where(n, x, k) }", k=f32(3.0)
    ),
    "label_encoder_fusion": label_encoders,
    "matmul_add_fusion": lambda: simple("m = MatMul(x, w) y = Add(m, b)", w=(4, 4), b=(4,)),
    "matmul_bn_fusion": lambda: simple(
        "m = MatMul(x, w) y = BatchNormalization(m, g, h, u, v)",
        w=(4, 4),
        g=(4,),
        h=(4,),
        u=(4,),
        v=np.full(4, 0.7, np.float32),
    ),
    "gemm_sum_fusion": lambda: simple("m = Gemm(x, w) y = Sum(m, b)", w=(4, 4), b=(4,)),
    "gemm_transpose_fusion": lambda: graph(
        "(float[4,2] x) => (float[2,4] y) { t = Transpose<perm=[1,0]>(x) y = Gemm(t, w, b) }", w=(4, 4), b=(4,)
    ),
    "reshape_fusion": lambda: graph(
        "(float[n,4,6] x) => (float[n,4,2,3] y) { s = Shape(x) a = Gather<axis=0>(s, i0) b = Gather<axis=0>(s, i1) "
        "ua = Unsqueeze(a, ax) ub = Unsqueeze(b, ax) t = Concat<axis=0>(ua, ub, tail) y = Reshape(x, t) }",
        i0=np.array(0, np.int64),
        i1=np.array(1, np.int64),
        ax=i64(0),
        tail=i64(2, 3),
    ),
    "slice_concat_to_space_to_depth_fusion": focus,
    "transpose_optimizer": lambda: simple("a = Transpose<perm=[1,0]>(x) r = Relu(a) y = Transpose<perm=[1,0]>(r)"),
    "standard_gelu_fusion": lambda: gelu(20),
    "standard_layer_norm_fusion": layer_norm,
    "qdq_propagation": lambda: qdq_pairs(
        "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) t = Transpose<perm=[0,1,3,2]>(d) y = Relu(t)"
    ),
    "weight_bias_quantization": lambda: graph(
        "(float[1,4,8,8] x) => (float[1,4,8,8] y) { q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) "
        "wq = QuantizeLinear(w, ws, wz) wd = DequantizeLinear(wq, ws, wz) c = Conv<pads=[1,1,1,1]>(d, wd, b) "
        "qc = QuantizeLinear(c, s, z) y = DequantizeLinear(qc, s, z) }",
        w=(4, 4, 3, 3),
        b=(4,),
        s=f32(0.05),
        z=np.array(128, np.uint8),
        ws=f32(0.02),
        wz=np.array(0, np.int8),
    ),
    "where_dummy_dq": lambda: graph(
        "(float[1,4] x, bool[1,4] c) => (float[1,4] y) { q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) "
        "w = Where(c, d, k) qw = QuantizeLinear(w, s, z) y = DequantizeLinear(qw, s, z) }",
        s=f32(0.05),
        z=np.array(128, np.uint8),
        k=f32(0.5),
    ),
    "clip_quant_fusion": lambda: qdq_pairs(
        "e = Exp(x) r = Clip(e, lo, hi) q = QuantizeLinear(r, s2, z2) y = DequantizeLinear(q, s2, z2)",
        lo=f32(0.0),
        hi=f32(100.0),
    ),
    "relu_quant_fusion": lambda: qdq_pairs("r = Relu(x) q = QuantizeLinear(r, s2, z2) y = DequantizeLinear(q, s2, z2)"),
    "qdq_s8_to_u8": lambda: quantized_conv(signed=True),
    "qdq_selector_action": quantized_conv,
    "gemm_activation_fusion": lambda: simple("m = Gemm(x, w, b) y = Relu(m)", w=(4, 4), b=(4,)),
    "matmul_integer_to_float_fusion": integer_matmul,
    "dynamic_quantize_matmul_fusion": integer_matmul,
    "conv_activation_fusion": lambda: conv("y = Relu(c)"),
    "gelu_fusion": lambda: gelu(17),
    "layer_norm_fusion": layer_norm,
    "simplified_layer_norm_fusion": rms_norm,
    "attention_fusion": lambda: bert_layer(opset=12),
    "gather_slice_to_split_fusion": lambda: graph(
        "(float[2,3,4] x) => (float[2,4] y) { a = Gather<axis=1>(x, i0) b = Gather<axis=1>(x, i1) "
        "c = Gather<axis=1>(x, i2) d = Add(a, b) y = Mul(d, c) }",
        i0=np.array(0, np.int64),
        i1=np.array(1, np.int64),
        i2=np.array(2, np.int64),
    ),
    "gather_to_slice_fusion": lambda: graph(
        "(float[2,6] x, int64 n) => (float[2,k] y) { r = Range(st, n, one) y = Gather<axis=1>(x, r) }",
        st=np.array(0, np.int64),
        one=np.array(1, np.int64),
    ),
    "matmul_transpose_fusion": lambda: graph(
        "(float[1,4,8] x, float[1,6,8] z) => (float[1,4,6] y) { t = Transpose<perm=[0,2,1]>(z) y = MatMul(x, t) }"
    ),
    "bias_gelu_fusion": lambda: gelu(17, bias=True),
    "skip_layer_norm_fusion": skip_layer_norm,
    "bias_skip_layer_norm_fusion": lambda: graph(
        "(float[1,4,8] x, float[1,4,8] z) => (float[1,4,8] y) { m = MatMul(z, w) n = Add(m, bias) "
        "y = com.microsoft.SkipLayerNormalization<epsilon=1e-5>(n, x, gamma, beta) }",
        domains=("com.microsoft",),
        w=(8, 8),
        bias=(8,),
        gamma=(8,),
        beta=(8,),
    ),
    "fast_gelu_fusion": fast_gelu,
    "quick_gelu_fusion": lambda: simple("a = Mul(x, k) s = Sigmoid(a) y = Mul(x, s)", k=f32(1.702)),
    "gelu_approximation": lambda: gelu(17),
    "matmul_scale_fusion": lambda: graph(
        "(float[2,4] x, float[4,4] z) => (float[2,4] y) { a = MatMul(x, z) y = Mul(a, k) }", k=f32(0.125)
    ),
    "matmul_nbits_fusion": four_bit_matmul,
    "qdq_final_cleanup": lambda: qdq_pairs("q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) y = Relu(d)"),
    "nchwc_transformer": lambda: graph(
        "(float[1,16,8,8] x) => (float[1,16,8,8] y) { y = Conv<pads=[1,1,1,1]>(x, w) }", w=(16, 16, 3, 3)
    ),
    "nhwc_transformer": lambda: graph(
        "(uint8[1,4,8,8] x) => (uint8[1,4,8,8] y) { y = QLinearConv<pads=[1,1,1,1]>(x, s, z, w, ws, wz, s, z) }",
        s=f32(0.05),
        z=np.array(128, np.uint8),
        w=np.random.default_rng(3).integers(-100, 100, (4, 4, 3, 3)).astype(np.int8),
        ws=f32(0.01),
        wz=np.array(0, np.int8),
    ),
    "conv_add_activation_fusion": lambda: graph(
        "(float[1,4,8,8] x) => (float[1,4,8,8] y) { r0 = Relu(x) "
        "c = Conv<pads=[1,1,1,1]>(r0, w, b) a = Add(c, r0) y = Relu(a) }",
        w=(4, 4, 3, 3),
        b=(4,),
    ),
    "transformers_gelu_fusion": lambda: gelu(17),
    "transformers_fast_gelu_fusion": fast_gelu,
    "transformers_quick_gelu_fusion": lambda: simple("a = Mul(x, k) s = Sigmoid(a) y = Mul(x, s)", k=f32(1.702)),
    "transformers_layer_norm_fusion": layer_norm,
    "transformers_simplified_layer_norm_fusion": lambda: simple(RMS_NORM.format("x"), "1,4,8", **RMS_WEIGHTS),
    "transformers_skip_layer_norm_fusion": skip_layer_norm,
    "transformers_skip_simplified_layer_norm_fusion": skip_rms_norm,
    "transformers_attention_fusion": bert_layer,
    "transformers_embed_layer_norm_fusion": lambda: bert_layer(embeddings=True),
    "transformers_bias_gelu_fusion": lambda: simple(
        "m = MatMul(x, w) h = Add(m, bias) d = Div(h, root) e = Erf(d) a = Add(e, unit) n = Mul(h, a) y = Mul(n, half)",
        "1,4,8",
        w=(8, 8),
        bias=(8,),
        root=f32(math.sqrt(2)),
        unit=f32(1.0),
        half=f32(0.5),
    ),
    "transformers_bias_skip_layer_norm_fusion": lambda: skip_layer_norm(bias=True),
    "unfuse_conv": lambda: fused(
        "FusedConv",
        {"w": _random(4, 3, 3, 3), "b": _random(4), "z": _random(1, 4, 8, 8)},
        [1, 3, 8, 8],
        [1, 4, 8, 8],
        pads=[1, 1, 1, 1],
        activation="Relu",
    ),
    "unfuse_gemm": lambda: fused(
        "FusedGemm",
        {"w": _random(4, 4), "b": _random(4)},
        [2, 4],
        [2, 4],
        activation="LeakyRelu",
        activation_alpha=0.2,
        transB=1,
    ),
    "unfuse_matmul": lambda: fused("FusedMatMul", {"w": _random(2, 4)}, [3, 4], [3, 2], transB=1, alpha=0.5),
    "remove_identity": lambda: simple("a = Identity(x) y = Relu(a)"),
    "remove_dropout": lambda: simple("a = Dropout(x) y = Relu(a)"),
    "lift_constants": lambda: simple("k = Constant<value_float=2.0>() y = Mul(x, k)"),
    "reduce_fewer_axes": lambda: graph(
        "(float[2,3,1,8] x) => (float[1,3,1,1] y) { m = ReduceMean<axes=[-1,-2]>(x) y = ReduceSum(m, axes) }",
        axes=i64(0, 3),
    ),
    "swish_in_one_batch": lambda: graph(
        "(float[2,3,8] x) => (float[2,3,8] y) <float[2,3,8] n> "
        "{ n = LayerNormalization(x, g) s = Sigmoid(n) y = Mul(n, s) }",
        g=(8,),
    ),
    "lower_rank_transpose": lambda: graph(
        "(float[1,8,6] x) => (float[1,6,8] y) <float[1,2,4,2,3] r, float[1,2,3,2,4] t> "
        "{ r = Reshape(x, a) t = Transpose<perm=[0,3,4,1,2]>(r) y = Reshape(t, b) }",
        a=i64(1, 2, 4, 2, 3),
        b=i64(1, 6, 8),
    ),
    "static_split_to_slice": lambda: graph(
        "(float[2,6] x) => (float[2,2] y, float[2,4] z) { y, z = Split<axis=1>(x, parts) }", parts=i64(2, 4)
    ),
    "dedupe_initializers": lambda: simple(
        "a = Mul(x, k1) y = Mul(a, k2)", k1=np.full(4, 2.5, np.float32), k2=np.full(4, 2.5, np.float32)
    ),
    "remove_unused": lambda: simple("a = Exp(x) y = Relu(x)"),
    "clamp_infinities": masked_attention,
    "clamp_mask_constants": lambda: masked_attention(float(np.finfo(np.float32).min)),
    "drop_isnan_guard": lambda: masked_attention(-1e4),
    "narrow_doubles": lambda: graph(
        "(float[2,4] x, double[2,4] z) => (float[2,4] y, double[2,4] w) "
        "{ a = Cast<to=11>(x) b = Mul(a, k) w = Add(b, z) s = Softmax<axis=-1>(w) y = Cast<to=1>(s) }",
        17,
        k=np.full(4, 1 / 3, np.float64),
    ),
}


def save(model: onnx.ModelProto, folder: Path, *, external: bool = False, name: str = "in.onnx") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    if external:
        onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    else:
        onnx.save(model, path)
    return str(path)
