"""Every precision word on real graphs: the label is measured, the model runs, and it is close to the original."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from ep.quantize.graphs import Builder, conv_net, image, saved, tokens, transformer
from modelwright.data import DataSource
from modelwright.errors import InputError
from modelwright.graph import load, summary
from modelwright.stages.quantize import QuantizeParams, canonical, run_quantize, steps_of
from support import models

MODELS = {"conv": (conv_net, image), "transformer": (transformer, tokens)}
EVERY = [
    ("fp32", "fp32", 0.999999),
    ("fp16", "fp16", 0.999),
    ("dynamic", "dynamic int8", 0.95),
    ("w8a8", "w8a8", 0.90),
    ("int8", "w8a8", 0.90),
    ("w8a16", "w8a16", 0.95),
    ("w16a16", "w16a16", 0.99),
    ("int16", "w16a16", 0.99),
    ("w16a8", "w16a8", 0.90),
    ("w8a8+fp16", "w8a8", 0.90),
    ("int16+fp16", "w16a16", 0.99),
]


def outputs(path: str | Path, sample: dict[str, np.ndarray]) -> np.ndarray:
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, sample)[0].astype(np.float64).ravel()


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def parity(source: str, made: Path, feed) -> float:
    found = [(outputs(source, feed(i)), outputs(made, feed(i))) for i in range(100, 103)]
    assert all(np.isfinite(after).all() for _, after in found)
    return min(cosine(before, after) for before, after in found)


def test_a_bias_of_several_operators_is_copied_under_names_that_are_free(tmp_path):
    """onnxruntime would call the copies `bias0`, `bias1`: here those are what the operators answer (basic-pitch)."""
    net = Builder()
    net.weight("bias", 4)
    last = "image"
    for number in range(4):
        last = net.add("Conv", [last, net.weight(f"w{number}", 4, 4, 1, 1), "bias"], f"bias{number}")
    shape = onnx.helper.make_tensor_value_info("image", 1, [1, 4, 8, 8])
    answer = onnx.helper.make_tensor_value_info(last, 1, [1, 4, 8, 8])
    source = saved(net.model([shape], [answer]), tmp_path)
    run_quantize(source, str(tmp_path), QuantizeParams("w8a8", samples=4), DataSource())

    def feed(index):
        return {"image": np.random.default_rng(index).standard_normal((1, 4, 8, 8), dtype=np.float32)}

    assert parity(source, tmp_path / "model.onnx", feed) > 0.9


@pytest.mark.parametrize(("word", "label", "bound"), EVERY)
@pytest.mark.parametrize("name", MODELS)
def test_the_measured_label_is_the_asked_one_and_the_model_stays_close(tmp_path, name, word, label, bound):
    make, feed = MODELS[name]
    source = saved(make(), tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    outcome = run_quantize(source, str(work), QuantizeParams(word, samples=8), DataSource())
    assert outcome.measured == label
    assert summary(load(work / "model.onnx")).precision.label == label
    assert [item.name for item in work.iterdir()] == ["model.onnx"]
    onnx.checker.check_model(str(work / "model.onnx"), full_check=True)
    assert parity(source, work / "model.onnx", feed) > bound


@pytest.mark.parametrize(
    ("word", "label"), [("int4", "w4a32"), ("w4a32", "w4a32"), ("w4a16", "w4a16"), ("int4+fp16", "w4a16")]
)
def test_four_bit_weights_are_four_bit_and_w4a16_has_half_activations(tmp_path, word, label):
    source = saved(transformer(), tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    outcome = run_quantize(source, str(work), QuantizeParams(word), None)
    assert (outcome.measured, outcome.precision) == (label, label)
    model = onnx.load(work / "model.onnx")
    packed = [node for node in model.graph.node if node.op_type == "MatMulNBits"]
    stored = {item.name: item.data_type for item in model.graph.initializer}
    scale_type = onnx.TensorProto.FLOAT16 if label == "w4a16" else onnx.TensorProto.FLOAT
    assert {stored[node.input[2]] for node in packed} == {scale_type}
    assert parity(source, work / "model.onnx", tokens) > 0.9


def test_a_model_without_matmul_cannot_be_labelled_int4(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    with pytest.raises(InputError, match="label is not true") as caught:
        run_quantize(saved(conv_net(), tmp_path), str(work), QuantizeParams("int4"), None)
    assert "w8a8 reaches convolutions" in caught.value.fix
    assert "int4" not in caught.value.fix


def test_positions_that_are_added_to_a_small_transformer_leave_its_label_true(tmp_path):
    """BERT and MPNet of a test's size: the folded positions are a third of all that is stored in two dimensions."""
    model = transformer()
    rng = np.random.default_rng(5)
    model.graph.initializer.append(
        onnx.numpy_helper.from_array(rng.standard_normal((1, 400, 64)).astype(np.float32), "positions")
    )
    first = next(node for node in model.graph.node if node.op_type == "Gather")
    cut = [("p_from", [0]), ("p_to", [16]), ("p_axis", [1])]
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.array(v, np.int64), n) for n, v in cut)
    slice_ = onnx.helper.make_node("Slice", ["positions", "p_from", "p_to", "p_axis"], ["sixteen"], name="cut")
    add = onnx.helper.make_node("Add", [first.output[0] + "_own", "sixteen"], [first.output[0]], name="place")
    first.output[0] += "_own"
    model.graph.node.insert(1, slice_)
    model.graph.node.insert(2, add)
    work = tmp_path / "work"
    work.mkdir()
    outcome = run_quantize(saved(model, tmp_path), str(work), QuantizeParams("w8a16", samples=4), DataSource())
    assert outcome.measured == "w8a16"


def test_static_quantization_raises_an_old_opset(tmp_path):
    source = saved(conv_net(opset=11), tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    outcome = run_quantize(source, str(work), QuantizeParams("w8a8", samples=4), DataSource())
    assert outcome.opset == 13
    assert "per-axis" in outcome.granularity
    assert parity(source, work / "model.onnx", image) > 0.9


@pytest.mark.parametrize(("opset", "domain"), [(17, "com.microsoft"), (21, "")])
def test_sixteen_bit_pairs_use_the_domain_that_has_them(tmp_path, opset, domain):
    work = tmp_path / "work"
    work.mkdir()
    outcome = run_quantize(
        saved(conv_net(opset=opset), tmp_path),
        str(work),
        QuantizeParams("w8a16", samples=2),
        DataSource(),
    )
    model = onnx.load(work / "model.onnx")
    assert {node.domain for node in model.graph.node if node.op_type == "QuantizeLinear"} == {domain}
    assert outcome.opset == opset


@pytest.mark.parametrize("word", ["w4a8", "bf16", "fp8", "w3a3", "", "w8a8+w8a8", "fp16+w8a8"])
def test_what_cannot_be_made_true_is_refused_with_the_reason(word):
    with pytest.raises(InputError) as caught:
        steps_of(word)
    assert caught.value.cause
    assert caught.value.fix


def test_aliases_have_one_spelling():
    assert [canonical(word) for word in ("int8", "int16", "int4", "w4a16", "int4+fp16", "INT8+FP16")] == [
        "w8a8",
        "w16a16",
        "w4a32",
        "w4a16",
        "w4a16",
        "w8a8+fp16",
    ]


def test_fp16_moves_what_it_cannot_hold_and_says_how_many(tmp_path):
    model = conv_net()
    bias = next(item for item in model.graph.initializer if item.name == "fc.b")
    values = onnx.numpy_helper.to_array(bias).copy()
    values[:3] = [1e6, -1e6, 1e-9]
    bias.CopyFrom(onnx.numpy_helper.from_array(values, "fc.b"))
    work = tmp_path / "work"
    work.mkdir()
    outcome = run_quantize(saved(model, tmp_path), str(work), QuantizeParams("fp16"), None)
    assert (outcome.clipped.to_largest, outcome.clipped.to_smallest) == (2, 1)
    assert any("65504" in warning for warning in outcome.warnings)


@pytest.mark.parametrize("keep", [True, False])
def test_fp16_keeps_the_types_of_inputs_and_outputs_when_asked(tmp_path, keep):
    work = tmp_path / "work"
    work.mkdir()
    run_quantize(saved(conv_net(), tmp_path), str(work), QuantizeParams("fp16", keep_io_types=keep), None)
    facts = summary(load(work / "model.onnx"))
    assert {value.dtype for value in (*facts.inputs, *facts.outputs)} == {"float32" if keep else "float16"}


def test_a_chain_never_puts_a_cast_between_a_pair_and_its_operator(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    source = saved(transformer(), tmp_path)
    run_quantize(source, str(work), QuantizeParams("w8a8+fp16", samples=2), DataSource())
    model = onnx.load(work / "model.onnx")
    casts = {name for node in model.graph.node if node.op_type == "Cast" for name in node.output}
    pairs = {name for node in model.graph.node if node.op_type == "DequantizeLinear" for name in node.output}
    multiplied = [node for node in model.graph.node if node.op_type == "MatMul"]
    assert multiplied
    assert all(set(node.input) <= pairs for node in multiplied)
    assert casts


def recurrent() -> onnx.ModelProto:
    """An LSTM between two layers; onnxruntime has no rule for its weights."""
    rng = np.random.default_rng(0)

    def weight(name: str, *shape: int) -> onnx.TensorProto:
        return onnx.numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) * 0.3, name)

    make = onnx.helper.make_node
    nodes = [
        make("MatMul", ["x", "w_in"], ["a"], name="in"),
        make("LSTM", ["a", "W", "R"], ["h"], name="lstm", hidden_size=16),
        make("Squeeze", ["h", "axis"], ["s"], name="squeeze"),
        make("MatMul", ["s", "w_out"], ["y"], name="out"),
    ]
    spec = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "recurrent",
        [spec("x", onnx.TensorProto.FLOAT, [6, 1, 8])],
        [spec("y", onnx.TensorProto.FLOAT, [6, 1, 4])],
        [
            weight("w_in", 8, 8),
            weight("W", 1, 64, 8),
            weight("R", 1, 64, 16),
            weight("w_out", 16, 4),
            onnx.numpy_helper.from_array(np.array([1], np.int64), "axis"),
        ],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


def flat_bias() -> onnx.ModelProto:
    """A Gemm whose bias has two axes, as some converters write it."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((8, 4)), "b": rng.standard_normal((1, 4))}
    spec = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="gemm")],
        "gemm",
        [spec("x", onnx.TensorProto.FLOAT, [1, 8])],
        [spec("y", onnx.TensorProto.FLOAT, [1, 4])],
        [onnx.numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
        value_info=[spec("b", onnx.TensorProto.FLOAT, [1, 4])],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(("make", "shape"), [(recurrent, (6, 1, 8)), (flat_bias, (1, 8))])
@pytest.mark.parametrize("word", ["w8a8", "w8a16"])
def test_weights_the_quantizer_has_no_rule_for_get_their_bits_too(tmp_path, make, shape, word):
    source = saved(make(), tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    params = QuantizeParams(word, samples=8, per_channel=True, op_types=("all",))
    outcome = run_quantize(source, str(work), params, DataSource())
    assert outcome.measured == word

    def feed(index: int) -> dict[str, np.ndarray]:
        return {"x": np.random.default_rng(index).standard_normal(shape).astype(np.float32)}

    assert parity(source, work / "model.onnx", feed) > 0.9


@pytest.mark.parametrize("word", ["fp16", "w8a8+fp16"])
@pytest.mark.parametrize("first", ["x", "h"])
def test_what_only_a_subgraph_reads_is_there_in_half_precision_too(tmp_path, word, first):
    """`first` is what its branches read: an input, or what a product made."""
    branches = {
        f"{name}_branch": onnx.helper.make_graph([node], name, [], [models.value(name, shape=[1, 8])])
        for name, node in {
            "then": onnx.helper.make_node("MatMul", [first, "w"], ["then"]),
            "else": onnx.helper.make_node("Neg", [first], ["else"]),
        }.items()
    }
    nodes = [
        onnx.helper.make_node("MatMul", ["z", "v"], ["h"], name="product"),
        onnx.helper.make_node("ReduceSum", ["h"], ["s"], name="sum", keepdims=0),
        onnx.helper.make_node("Greater", ["s", "zero"], ["c"], name="more"),
        onnx.helper.make_node("If", ["c"], ["y"], name="if", **branches),
    ]
    stored = [models.weight("v", 8, 8), models.weight("w", 8, 8), models.scalar("zero", 0.0)]
    ends = ([models.value(name, shape=[1, 8]) for name in names] for names in ("xz", "y"))
    path = saved(models.model(nodes, *ends, stored), tmp_path)
    (work := tmp_path / "work").mkdir()
    run_quantize(path, str(work), QuantizeParams(word, samples=2), DataSource())
    fed = dict(zip("xz", np.random.default_rng(0).normal(size=(2, 1, 8)).astype("float32"), strict=True))
    assert cosine(outputs(path, fed), outputs(work / "model.onnx", fed)) > 0.98


def test_what_several_float_operators_read_is_cast_for_them_once(tmp_path):
    """One constant for an operator in float16 and for two that stay float (`Max`)."""
    nodes = [
        onnx.helper.make_node("Mul", ["x", "c"], ["m"], name="m"),
        onnx.helper.make_node("Max", ["m", "c"], ["a"], name="a"),
        onnx.helper.make_node("Max", ["a", "c"], ["b"], name="b"),
        onnx.helper.make_node("Add", ["b", "m"], ["y"], name="y"),
    ]
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4]) for name in ("x", "y")]
    stored = [onnx.numpy_helper.from_array(np.array([1, -2, 3, 0.5], np.float32), "c")]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    path, work = saved(proto, tmp_path), tmp_path / "work"
    work.mkdir()
    run_quantize(path, str(work), QuantizeParams("fp16"), None)
    sample = {"x": np.array([[1, 2, -3, 4]], np.float32)}
    assert np.allclose(outputs(path, sample), outputs(work / "model.onnx", sample), rtol=1e-2)
