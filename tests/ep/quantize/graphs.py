"""Small float models, made here, with the shapes of the real ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Of the residual model: channels, products, and which of them may be loud.
WIDTH, BLOCKS, LOUD = 16, 10, 4


class Builder:
    """Nodes and seeded weights, named in order."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, name: str, *shape: int, scale: float = 0.2) -> str:
        return self.constant(name, (self.rng.standard_normal(shape) * scale).astype(np.float32))

    def constant(self, name: str, value: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, op: str, inputs: list[str], output: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(op, inputs, [output], name=f"{output}/{op}", **attributes))
        return output

    def linear(self, source: str, name: str, inputs: int, outputs: int) -> str:
        product = self.add("MatMul", [source, self.weight(f"{name}.w", inputs, outputs)], f"{name}.product")
        return self.add("Add", [product, self.weight(f"{name}.b", outputs)], name)

    def norm(self, source: str, name: str, size: int) -> str:
        gamma = self.constant(f"{name}.g", (1 + 0.1 * self.rng.standard_normal(size)).astype(np.float32))
        return self.add("LayerNormalization", [source, gamma, self.weight(f"{name}.b", size)], name, axis=-1)

    def model(self, inputs: list, outputs: list, opset: int = 17) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "test", inputs, outputs, self.weights)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10 if opset > 20 else 8
        )
        onnx.checker.check_model(model)
        return model


def conv_net(opset: int = 17) -> onnx.ModelProto:
    """Conv, Relu, residual Add, pooling, Gemm."""
    make = Builder()
    first = make.add("Conv", ["image", make.weight("c1.w", 16, 3, 3, 3), make.weight("c1.b", 16)], "c1", pads=[1] * 4)
    first = make.add("Relu", [first], "r1")
    second = make.add("Conv", [first, make.weight("c2.w", 16, 16, 3, 3, scale=0.1)], "c2", pads=[1] * 4)
    joined = make.add("Relu", [make.add("Add", [second, first], "sum")], "r2")
    pooled = make.add("MaxPool", [joined], "p", kernel_shape=[2, 2], strides=[2, 2])
    flat = make.add("Flatten", [pooled], "flat")
    make.add(
        "Gemm",
        [flat, make.weight("fc.w", 10, 16 * 64, scale=0.05), make.weight("fc.b", 10)],
        "logits",
        transB=1,
    )
    return make.model(
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 16, 16])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 10])],
        opset,
    )


def transformer(seq: int = 16, hidden: int = 64, heads: int = 4, layers: int = 1, vocab: int = 100) -> onnx.ModelProto:
    """Embedding, self-attention with a mask, GELU, layer norms."""
    make = Builder(1)
    split = make.constant("split", np.array([1, seq, heads, hidden // heads], np.int64))
    whole = make.constant("whole", np.array([1, seq, hidden], np.int64))
    axes = make.constant("axes", np.array([1, 2], np.int64))
    one, low = make.constant("one", np.float32(1)), make.constant("low", np.float32(-10000))
    mask = make.add("Cast", [make.add("Unsqueeze", ["attention_mask", axes], "mask4")], "maskf", to=TensorProto.FLOAT)
    mask = make.add("Mul", [make.add("Sub", [one, mask], "masked"), low], "bias")
    x = make.add("Gather", [make.weight("table", vocab, hidden), "input_ids"], "embedded")
    x = make.norm(x, "norm0", hidden)
    for layer in range(layers):
        x = _layer(make, x, f"l{layer}", (split, whole, mask, one), hidden)
    make.linear(x, "logits", hidden, 8)
    return make.model(
        [helper.make_tensor_value_info(n, TensorProto.INT64, [1, seq]) for n in ("input_ids", "attention_mask")],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, seq, 8])],
    )


def _layer(make: Builder, x: str, name: str, shared: tuple[str, str, str, str], hidden: int) -> str:
    split, whole, mask, one = shared
    parts = {}
    for part, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        value = make.add("Reshape", [make.linear(x, f"{name}.{part}", hidden, hidden), split], f"{name}.{part}4")
        parts[part] = make.add("Transpose", [value], f"{name}.{part}t", perm=perm)
    scores = make.add("Add", [make.add("MatMul", [parts["q"], parts["k"]], f"{name}.qk"), mask], f"{name}.scores")
    mixed = make.add("MatMul", [make.add("Softmax", [scores], f"{name}.p", axis=-1), parts["v"]], f"{name}.pv")
    mixed = make.add("Reshape", [make.add("Transpose", [mixed], f"{name}.pvt", perm=[0, 2, 1, 3]), whole], f"{name}.m")
    x = make.norm(
        make.add("Add", [make.linear(mixed, f"{name}.o", hidden, hidden), x], f"{name}.res"),
        f"{name}.n1",
        hidden,
    )
    up = make.linear(x, f"{name}.up", hidden, 4 * hidden)
    gate = make.add("Add", [make.add("Erf", [up], f"{name}.erf"), one], f"{name}.gate")
    down = make.linear(make.add("Mul", [up, gate], f"{name}.gelu"), f"{name}.down", 4 * hidden, hidden)
    return make.norm(make.add("Add", [down, x], f"{name}.res2"), f"{name}.n2", hidden)


def saved(model: onnx.ModelProto, folder: Path, name: str = "float.onnx") -> str:
    path = folder / name
    onnx.save(model, path)
    return str(path)


def image(index: int) -> dict[str, np.ndarray]:
    return {"image": np.random.default_rng(index).standard_normal((1, 3, 16, 16)).astype(np.float32)}


def tokens(index: int, seq: int = 16, vocab: int = 100) -> dict[str, np.ndarray]:
    ids = np.random.default_rng(index).integers(0, vocab, (1, seq))
    return {"input_ids": ids, "attention_mask": np.ones((1, seq), np.int64)}


def residual(loud: bool) -> onnx.ModelProto:
    """Ten products, each added to what it reads. One channel of a `loud` one is 400 times the others, which a factor
    behind it takes back: 8 bits for that tensor leave nothing of the others."""
    make = Builder(2)
    x = "x"
    for place in range(BLOCKS):
        weight = (make.rng.standard_normal((WIDTH, WIDTH)) * 0.2).astype(np.float32)
        factor = np.full(WIDTH, 0.5, np.float32)
        if loud and place == LOUD:
            weight[:, 3] *= 400
            factor[3] /= 400
        product = make.add("MatMul", [x, make.constant(f"w{place}", weight)], f"p{place}")
        scaled = make.add("Mul", [product, make.constant(f"f{place}", factor)], f"m{place}")
        x = make.add("Add", [x, scaled], f"x{place}")
    value = helper.make_tensor_value_info
    return make.model([value("x", 1, [1, 8, WIDTH])], [value(x, 1, [1, 8, WIDTH])])
