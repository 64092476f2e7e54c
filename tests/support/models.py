"""Small ONNX models for tests, made on the spot. Seeded; nothing here needs onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 21
IR_VERSION = 10
FLOAT, FLOAT16 = TensorProto.FLOAT, TensorProto.FLOAT16
Shape = list[int | str | None] | None


def value(name: str, dtype: int = FLOAT, shape: Shape = None) -> onnx.ValueInfoProto:
    """A typed graph input or output; a name in `shape` is a symbolic dimension."""
    return helper.make_tensor_value_info(name, dtype, shape)


def weight(name: str, *shape: int, dtype: str = "float32", seed: int = 0) -> onnx.TensorProto:
    """Random weights: normal for floats, the full range for integers."""
    rng = np.random.default_rng([seed, *name.encode()])
    if np.issubdtype(np.dtype(dtype), np.floating):
        return numpy_helper.from_array(rng.standard_normal(shape).astype(dtype), name)
    limits = np.iinfo(dtype)
    array = rng.integers(limits.min, limits.max, size=shape, dtype=dtype, endpoint=True)
    return numpy_helper.from_array(array, name)


def scalar(name: str, number: float, dtype: str = "float32") -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(number, dtype=dtype), name)


def model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    weights: list[onnx.TensorProto] | None = None,
    opsets: dict[str, int] | None = None,
    functions: list[onnx.FunctionProto] | None = None,
) -> onnx.ModelProto:
    """A model with fixed versions, so its bytes do not depend on the installed onnx."""
    graph = helper.make_graph(nodes, "test", inputs, outputs, weights or [])
    imports = [helper.make_opsetid(domain, version) for domain, version in (opsets or {"": OPSET}).items()]
    return helper.make_model(
        graph,
        opset_imports=imports,
        ir_version=IR_VERSION,
        producer_name="tests",
        functions=functions or [],
    )


def save(proto: onnx.ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    path = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(proto.SerializeToString())
    return path


def save_external(proto: onnx.ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    """The same model with every weight, also those in attributes, in one file beside it."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    path = folder / name
    onnx.save_model(
        copy,
        str(path),
        save_as_external_data=True,
        location=f"{name}.data",
        size_threshold=0,
        convert_attribute=True,
    )
    return path


def left_alone() -> onnx.ModelProto:
    """One operator that no NPU has."""
    nodes = [helper.make_node("Det", ["x"], ["y"], name="det")]
    sides = [value("x", TensorProto.FLOAT, [1, 3, 8, 8]), value("y", TensorProto.FLOAT, [1, 3])]
    return model(nodes, sides[:1], sides[1:], [])


def mlp(hidden: int = 8, dtype: str = "float32") -> onnx.ModelProto:
    """MatMul, Add, Relu, MatMul with a symbolic batch."""
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h1"], name="first"),
        helper.make_node("Add", ["h1", "b1"], ["h2"], name="bias"),
        helper.make_node("Relu", ["h2"], ["h3"], name="act"),
        helper.make_node("MatMul", ["h3", "w2"], ["y"], name="second"),
    ]
    weights = [
        weight("w1", 4, hidden, dtype=dtype),
        weight("b1", hidden, dtype=dtype),
        weight("w2", hidden, 3, dtype=dtype),
    ]
    return model(nodes, [value("x", code, ["batch", 4])], [value("y", code, ["batch", 3])], weights)


def conv_net() -> onnx.ModelProto:
    """Conv (with attributes), Relu, global pooling on a fixed 1x3x8x8 image."""
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["y"]),
    ]
    return model(
        nodes,
        [value("x", FLOAT, [1, 3, 8, 8])],
        [value("y", FLOAT, [1, 4, 1, 1])],
        [weight("k", 4, 3, 3, 3)],
    )


def chain(length: int) -> onnx.ModelProto:
    """`length` nodes, each reading the one before."""
    nodes = [
        helper.make_node("Relu", [f"v{i}" if i else "x"], [f"v{i + 1}" if i + 1 < length else "y"])
        for i in range(length)
    ]
    return model(nodes, [value("x", FLOAT, [4])], [value("y", FLOAT, [4])])


def qdq(
    weight_type: str = "int8", activation_type: str = "uint8", domain: str = "", axis: bool = False
) -> onnx.ModelProto:
    """A statically quantized MatMul + Add: Q/DQ at both ends, DQ on the weight and on an int32 bias."""
    scales = np.full(8 if axis else (), 0.1, dtype=np.float32)
    weights = [
        weight("w_q", 4, 8, dtype=weight_type),
        numpy_helper.from_array(scales, "w_s"),
        numpy_helper.from_array(np.zeros(scales.shape, dtype=weight_type), "w_z"),
        weight("b_q", 8, dtype="int32"),
        scalar("s", 0.1),
        scalar("z", 0, activation_type),
    ]
    quantize, dequantize = "QuantizeLinear", "DequantizeLinear"
    nodes = [
        helper.make_node(quantize, ["x", "s", "z"], ["x_q"], domain=domain),
        helper.make_node(dequantize, ["x_q", "s", "z"], ["x_d"], domain=domain),
        helper.make_node(dequantize, ["w_q", "w_s", "w_z"], ["w_d"], domain=domain, axis=1),
        helper.make_node("MatMul", ["x_d", "w_d"], ["m"]),
        helper.make_node(dequantize, ["b_q", "s"], ["b_d"], domain=domain),
        helper.make_node("Add", ["m", "b_d"], ["a"]),
        helper.make_node(quantize, ["a", "s", "z"], ["y_q"], domain=domain),
        helper.make_node(dequantize, ["y_q", "s", "z"], ["y"], domain=domain),
    ]
    opsets = {"": OPSET} | ({domain: 1} if domain else {})
    return model(nodes, [value("x", FLOAT, [2, 4])], [value("y", FLOAT, [2, 8])], weights, opsets)


def weight_only_qdq(float_type: str = "float16", blocked: bool = True) -> onnx.ModelProto:
    """int4 weights behind DequantizeLinear, float activations."""
    code = helper.np_dtype_to_tensor_dtype(np.dtype(float_type))
    packed = helper.make_tensor("w_q", TensorProto.INT4, [32, 8], [1] * 256)
    scales = weight("w_s", *((2, 8) if blocked else (8,)), dtype=float_type)
    nodes = [
        helper.make_node(
            "DequantizeLinear", ["w_q", "w_s"], ["w_d"], axis=0 if blocked else 1, block_size=16 * blocked
        ),
        helper.make_node("MatMul", ["x", "w_d"], ["y"]),
    ]
    return model(nodes, [value("x", code, [2, 32])], [value("y", code, [2, 8])], [packed, scales])


def matmul_nbits(float_type: str = "float32", bits: int = 4) -> onnx.ModelProto:
    """The contrib operator for block-quantized weights: K=32, N=8, blocks of 16."""
    code = helper.np_dtype_to_tensor_dtype(np.dtype(float_type))
    node = helper.make_node(
        "MatMulNBits",
        ["x", "w", "s"],
        ["y"],
        domain="com.microsoft",
        K=32,
        N=8,
        bits=bits,
        block_size=16,
    )
    weights = [weight("w", 8, 2, 16 * bits // 8, dtype="uint8"), weight("s", 16, dtype=float_type)]
    opsets = {"": OPSET, "com.microsoft": 1}
    return model([node], [value("x", code, [2, 32])], [value("y", code, [2, 8])], weights, opsets)


def dynamic_int8() -> onnx.ModelProto:
    """DynamicQuantizeLinear + MatMulInteger, as the dynamic quantizer writes it."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["x_q", "x_s", "x_z"]),
        helper.make_node("MatMulInteger", ["x_q", "w", "x_z", "w_z"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=FLOAT),
        helper.make_node("Mul", ["x_s", "w_s"], ["s"]),
        helper.make_node("Mul", ["f", "s"], ["y"]),
    ]
    weights = [weight("w", 4, 8, dtype="int8"), scalar("w_z", 0, "int8"), scalar("w_s", 0.1)]
    return model(nodes, [value("x", FLOAT, [2, 4])], [value("y", FLOAT, [2, 8])], weights)


def qlinear() -> onnx.ModelProto:
    """Operator-oriented static quantization: QuantizeLinear, QLinearMatMul, DequantizeLinear."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["x_q"]),
        helper.make_node("QLinearMatMul", ["x_q", "s", "z", "w", "s", "w_z", "s", "z"], ["y_q"]),
        helper.make_node("DequantizeLinear", ["y_q", "s", "z"], ["y"]),
    ]
    weights = [
        weight("w", 4, 8, dtype="int8"),
        scalar("w_z", 0, "int8"),
        scalar("s", 0.1),
        scalar("z", 0, "uint8"),
    ]
    return model(nodes, [value("x", FLOAT, [2, 4])], [value("y", FLOAT, [2, 8])], weights)


def branching(then_op: str = "Relu", else_op: str = "Neg") -> onnx.ModelProto:
    """An If whose branches read the outer value `h`."""

    def branch(operator: str) -> onnx.GraphProto:
        node = helper.make_node(operator, ["h"], ["inner"])
        return helper.make_graph([node], operator, [], [value("inner")])

    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("If", ["flag"], ["y"], then_branch=branch(then_op), else_branch=branch(else_op)),
    ]
    inputs = [value("x", FLOAT, [2, 4]), value("flag", TensorProto.BOOL, [])]
    return model(nodes, inputs, [value("y", FLOAT, [2, 4])], [weight("w", 4, 4)])


def with_function(scale: float = 2.0) -> onnx.ModelProto:
    """A local function `local::Scaled` called twice."""
    body = [
        helper.make_node("Constant", [], ["c"], value_float=scale),
        helper.make_node("Mul", ["a", "c"], ["b"]),
    ]
    function = helper.make_function("local", "Scaled", ["a"], ["b"], body, [helper.make_opsetid("", OPSET)])
    nodes = [
        helper.make_node("Scaled", ["x"], ["h"], domain="local"),
        helper.make_node("Scaled", ["h"], ["y"], domain="local"),
    ]
    opsets = {"": OPSET, "local": 1}
    return model(nodes, [value("x", FLOAT, [2])], [value("y", FLOAT, [2])], opsets=opsets, functions=[function])


def ep_context(cache: str | None = None) -> onnx.ModelProto:
    """A compiled model as an NPU compiler leaves it: 16-bit Q/DQ at the border, a blob inside.

    `cache` names the blob's file; without it the blob is embedded.
    """
    attributes = {"embed_mode": int(cache is None), "ep_cache_context": (cache or "blob").encode()}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["x_q"]),
        helper.make_node(
            "EPContext",
            ["x_q"],
            ["y_q"],
            name="part0",
            domain="com.microsoft",
            main_context=1,
            source="QNN",
            partition_name="QNN_0",
            **attributes,
        ),
        helper.make_node("DequantizeLinear", ["y_q", "s", "z"], ["y"]),
    ]
    weights = [scalar("s", 0.1), scalar("z", 0, "uint16")]
    opsets = {"": OPSET, "com.microsoft": 1}
    return model(nodes, [value("x", FLOAT, [2, 4])], [value("y", FLOAT, [2, 4])], weights, opsets)
