"""Every number against a numpy float64 reference that shares no code with the product, to 0.01 dB."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnx
import onnxruntime.quantization as q
import pytest
from onnx import TensorProto, helper, numpy_helper

from ep.debug.nets import SHAPE, batch, chain, quantized, write_samples
from ep.debug.reference import execute, pass_through, sqnr
from modelwright.data import DataSource
from modelwright.diagnosis import DebugOptions, debug
from modelwright.diagnosis._run import DebugRequest, run_debug
from modelwright.targets import parse_target
from modelwright.vocabulary import Data
from modelwright.worker import run

SAMPLES = 3
UINT8 = {"weight_type": q.QuantType.QUInt8, "activation_type": q.QuantType.QUInt8}
INT8 = {"weight_type": q.QuantType.QInt8, "activation_type": q.QuantType.QUInt8, "per_channel": True}
W8A16 = {"weight_type": q.QuantType.QInt8, "activation_type": q.QuantType.QUInt16}
CLOSE = 0.01


def report_of(folder, wanted, got, **options):
    onnx.save(wanted, folder / "float.onnx")
    onnx.save(got, folder / "quant.onnx")
    data = write_samples(folder, SAMPLES)
    return debug(
        folder / "float.onnx", folder / "quant.onnx", DebugOptions(data=Data(str(data), samples=SAMPLES), **options)
    )


def both_runs(wanted, got):
    runs = [(execute(wanted, batch(100 + i)), execute(got, batch(100 + i))) for i in range(SAMPLES)]

    def stacked(name, other):
        return np.stack([ours[name] for ours, _ in runs]), np.stack([theirs[other] for _, theirs in runs])

    return stacked


def site_of(got, tensor):
    """Scale, zero point and type of the Q node that ORT put on a tensor; the name of the tensor behind it."""
    stored = {item.name: item for item in got.graph.initializer}
    node = next(
        n
        for n in got.graph.node
        if n.op_type == "QuantizeLinear" and n.input[0] in (tensor, f"{tensor}_QuantizeLinear_Input")
    )
    behind = next(
        n.output[0] for n in got.graph.node if n.op_type == "DequantizeLinear" and n.input[0] == node.output[0]
    )
    zero = stored[node.input[2]]
    kind = onnx.TensorProto.DataType.Name(zero.data_type).lower()
    scale = numpy_helper.to_array(stored[node.input[1]]).astype(np.float64)
    return scale, numpy_helper.to_array(zero).astype(np.float64), kind, behind


def assert_activations(report, wanted, got, tensors):
    """`tensors`: float tensor -> the tensor ORT put its pair on."""
    stacked = both_runs(wanted, got)
    rows = {row.tensor_name: row for row in report.activations}
    for name, carrier in tensors.items():
        scale, zero, kind, behind = site_of(got, carrier)
        ours, theirs = stacked(name, behind)
        assert rows[name].cumulative_sqnr_db == pytest.approx(sqnr(ours, theirs), abs=CLOSE), name
        local = sqnr(ours, pass_through(ours, scale, zero, kind))
        assert rows[name].local_sqnr_db == pytest.approx(local, abs=CLOSE), name
        assert rows[name].dtype == kind


def assert_weights(report, wanted, got, names):
    floats = {item.name: numpy_helper.to_array(item).astype(np.float64) for item in wanted.graph.initializer}
    behind = execute(got, batch(100))
    rows = {row.weight_name: row for row in (*report.weights, *report.biases)}
    for name in names:
        expected = sqnr(floats[name], behind[f"{name}_DequantizeLinear_Output"])
        assert rows[name].weight_sqnr_db == pytest.approx(expected, abs=CLOSE), name


def assert_output(report, wanted, got, name="y", other="y"):
    ours, theirs = both_runs(wanted, got)(name, other)
    (row,) = report.model_outputs
    assert row.cumulative_sqnr_db == pytest.approx(sqnr(ours, theirs), abs=CLOSE)
    each = [sqnr(one, two) for one, two in zip(ours, theirs, strict=True)]
    assert row.cumulative_worst_db == pytest.approx(min(each), abs=CLOSE)
    assert row.cumulative_mean_db == pytest.approx(np.mean(each), abs=CLOSE)


CASES = {
    "uint8 asymmetric": UINT8,
    "int8 symmetric per channel": INT8,
    "w8a16": W8A16,
    "contrib domain": {**UINT8, "extra_options": {"UseQDQContribOps": True}},
}


@pytest.mark.parametrize("options", CASES.values(), ids=CASES.keys())
def test_static_quantization_gives_the_true_numbers(tmp_path, options):
    wanted = chain()
    got = quantized(wanted, tmp_path, **options)
    report = report_of(tmp_path, wanted, got)
    assert report.status == "ok"
    assert report.unmatched_quant == ()
    assert_activations(report, wanted, got, {"x": "x", "m": "m", "y": "y", "a": _carrier(got)})
    assert_weights(report, wanted, got, ["w1", "w2", "gain"])
    assert_output(report, wanted, got)


def _carrier(got):
    """onnxruntime leaves the pair of a folded activation on the tensor before it, or gives that the other name."""
    made = {name for node in got.graph.node for name in node.output}
    return "a" if "a" in made and "g" not in made else "g"


def test_contrib_pairs_are_really_of_another_domain(tmp_path):
    got = quantized(chain(), tmp_path, **CASES["contrib domain"])
    assert {n.domain for n in got.graph.node if n.op_type == "QuantizeLinear"} == {"com.microsoft"}


def test_biases_are_no_weights(tmp_path):
    wanted = chain()
    report = report_of(tmp_path, wanted, quantized(wanted, tmp_path, **INT8))
    assert [row.weight_name for row in report.biases] == ["b1"]
    assert "b1" not in [row.weight_name for row in report.weights]
    assert report.summary.weight.count == len(report.weights) == 3


def test_onnxruntimes_own_debugger_is_wrong_where_ours_is_right(tmp_path):
    """Its unsigned subtraction wraps around; this keeps the test honest about why there is a dequantizer here."""
    from onnxruntime.quantization.qdq_loss_debug import compute_weight_error, create_weight_matching

    wanted = chain()
    got = quantized(wanted, tmp_path, **UINT8)
    report = report_of(tmp_path, wanted, got)
    found = create_weight_matching(str(tmp_path / "float.onnx"), str(tmp_path / "quant.onnx"))
    # It cannot score the scalar weight at all.
    theirs = compute_weight_error({"w1": found["w1"]})
    ours = {row.weight_name: row.weight_sqnr_db for row in report.weights}
    assert ours["w1"] > 35
    assert theirs["w1"] < 0


@pytest.mark.parametrize("activation", ["Relu", "Clip"])
def test_an_absorbed_activation_is_compared_behind_itself(tmp_path, activation):
    wanted = chain(activation)
    got = quantized(wanted, tmp_path, **INT8)
    assert activation not in {node.op_type for node in got.graph.node}
    report = report_of(tmp_path, wanted, got)
    row = next(row for row in report.activations if row.tensor_name == "a")
    assert (row.absorbed, row.match_kind, row.node) == (activation, "absorbed", "block/gemm")
    assert_activations(report, wanted, got, {"a": _carrier(got)})
    assert row.local_sqnr_db > 35


def test_an_activation_that_was_kept_is_not_called_absorbed(tmp_path):
    wanted = chain()
    got = quantized(wanted, tmp_path, **INT8, extra_options={"QDQKeepRemovableActivations": True})
    report = report_of(tmp_path, wanted, got)
    assert [row.absorbed for row in report.activations] == [None] * len(report.activations)
    assert_activations(report, wanted, got, {"g": "g", "a": "a"})


def test_an_excluded_last_node_still_has_an_output_score(tmp_path):
    wanted = chain()
    got = quantized(wanted, tmp_path, **UINT8, nodes_to_exclude=["head/matmul"])
    report = report_of(tmp_path, wanted, got)
    assert_output(report, wanted, got)
    row = next(row for row in report.activations if row.tensor_name == "y")
    assert (row.local_sqnr_db, row.local_reason) == (None, "not quantized here")
    assert row.cumulative_sqnr_db == pytest.approx(report.model_outputs[0].cumulative_sqnr_db, abs=1e-6)


def test_a_renamed_float_tensor_is_found_through_its_node(tmp_path):
    wanted = chain()
    got = quantized(wanted, tmp_path, **UINT8)
    renamed = onnx.ModelProto()
    renamed.CopyFrom(wanted)
    for node in renamed.graph.node:
        for names in (node.input, node.output):
            for place, name in enumerate(names):
                names[place] = "other_name" if name == "m" else name
    report = report_of(tmp_path, renamed, got)
    row = next(row for row in report.activations if row.tensor_name == "other_name")
    assert row.match_kind == "producer"
    _, _, _, behind = site_of(got, "m")
    ours, theirs = both_runs(wanted, got)("m", behind)
    assert row.cumulative_sqnr_db == pytest.approx(sqnr(ours, theirs), abs=CLOSE)


def test_a_tensor_with_no_counterpart_is_listed_with_the_reason(tmp_path):
    wanted = chain()
    got = quantized(wanted, tmp_path, **UINT8)
    renamed = onnx.ModelProto()
    renamed.CopyFrom(wanted)
    for node in renamed.graph.node:
        node.name = f"{node.name}_v2"
        for names in (node.input, node.output):
            for place, name in enumerate(names):
                names[place] = "other_name" if name == "m" else name
    report = report_of(tmp_path, renamed, got)
    assert report.status == "partial"
    assert "other_name" in [item.name for item in report.unmatched_float]
    (lost,) = report.unmatched_quant
    assert lost.name == "m"
    assert "neither this tensor nor a node block/gain" in lost.reason
    assert_output(report, wanted, got)


def int4_blocked(asymmetric: bool, missing_zero: bool = False) -> tuple[onnx.ModelProto, onnx.ModelProto, np.ndarray]:
    """A MatMul, and the same behind a blocked DequantizeLinear; the numbers are made here, with numpy alone."""
    rng = np.random.default_rng(3)
    values = (rng.standard_normal((64, 10)) + 0.2).astype(np.float32)
    blocks = values.reshape(4, 16, 10)
    low, high = blocks.min(1), blocks.max(1)
    if asymmetric:
        scale = ((high - low) / 15).astype(np.float32)
        zero = np.clip(np.round(-low / scale), 0, 15)
        limits, code = (0, 15), TensorProto.UINT4
    else:
        scale = (np.abs(blocks).max(1) / 7).astype(np.float32)
        zero, limits, code = np.zeros_like(scale), (-8, 7), TensorProto.INT4
    wide, shift = np.repeat(scale, 16, 0).astype(np.float64), np.repeat(zero, 16, 0)
    stored = np.clip(np.round(values / wide) + shift, *limits)
    expected = (stored - shift) * wide
    inputs = ["w_packed", "w_scale"] + ([] if missing_zero else ["w_zero"])
    parts = [
        helper.make_tensor("w_packed", code, [64, 10], stored.astype(int).ravel().tolist()),
        numpy_helper.from_array(scale, "w_scale"),
        helper.make_tensor("w_zero", code, [4, 10], zero.astype(int).ravel().tolist()),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, list(SHAPE))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [SHAPE[0], 10])
    product = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    imports = [helper.make_opsetid("", 21)]
    graph = helper.make_graph([product], "g", [x], [y], [numpy_helper.from_array(values, "w")])
    wanted = helper.make_model(graph, opset_imports=imports, ir_version=10)
    nodes = [
        helper.make_node("DequantizeLinear", inputs, ["w_wide"], name="dq", axis=0, block_size=16),
        helper.make_node("MatMul", ["x", "w_wide"], ["y"], name="product"),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y], [item for item in parts if item.name in inputs])
    return wanted, helper.make_model(graph, opset_imports=imports, ir_version=10), expected


@pytest.mark.parametrize(("asymmetric", "missing_zero"), [(True, False), (False, False), (False, True)])
def test_blocked_int4_weights_give_the_true_numbers(tmp_path, asymmetric, missing_zero):
    wanted, got, expected = int4_blocked(asymmetric, missing_zero)
    report = report_of(tmp_path, wanted, got)
    (row,) = report.weights
    values = numpy_helper.to_array(wanted.graph.initializer[0]).astype(np.float64)
    assert row.weight_name == "w"
    assert row.granularity == "block 16"
    assert row.weight_sqnr_db == pytest.approx(sqnr(values, expected), abs=CLOSE)
    assert report.mode == "weight-only"
    assert any("no local one" in note for note in report.notes)
    assert_output(report, wanted, got)


def test_matmul_nbits_weights_give_the_true_numbers(tmp_path):
    from modelwright.data import DataSource
    from modelwright.stages.quantize import QuantizeParams, run_quantize

    wanted = chain()
    onnx.save(wanted, tmp_path / "float.onnx")
    (tmp_path / "out").mkdir()
    run_quantize(
        str(tmp_path / "float.onnx"),
        str(tmp_path / "out"),
        QuantizeParams("int4", block_size=16, op_types=("MatMul",)),
        DataSource(),
    )
    report = debug(tmp_path / "float.onnx", tmp_path / "out", DebugOptions(data=Data(samples=1)))
    row = next(row for row in report.weights if row.weight_name == "w2")
    # What the model really multiplies with: its answer to the unit vectors.
    weights = numpy_helper.to_array(next(item for item in wanted.graph.initializer if item.name == "w2"))
    effective = _effective_weights(tmp_path / "out" / "model.onnx")
    assert row.weight_sqnr_db == pytest.approx(sqnr(weights.astype(np.float64), effective), abs=CLOSE)


def _effective_weights(path):
    """Feed unit vectors to the quantized MatMul alone."""
    import onnxruntime as ort

    model = onnx.load(path)
    node = next(n for n in model.graph.node if n.op_type == "MatMulNBits")
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info(node.input[0], TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None)],
        [item for item in model.graph.initializer if item.name in node.input],
    )
    single = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    session = ort.InferenceSession(single.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {node.input[0]: np.eye(48, dtype=np.float32)})[0].astype(np.float64)


def test_the_answer_does_not_depend_on_the_memory_budget(tmp_path):
    wanted = chain()
    whole = report_of(tmp_path, wanted, quantized(wanted, tmp_path, **INT8))
    # Far below what the command accepts, so the engine is asked itself.
    request = DebugRequest(
        str(tmp_path / "float.onnx"),
        str(tmp_path / "quant.onnx"),
        parse_target("cpu"),
        DataSource(Data(str(tmp_path / "data.npz"))),
        SAMPLES,
        1 << 12,
        origin=True,
    )
    cut = run(run_debug.call(request), timeout=60).unwrap()
    assert whole.chunks == 1
    assert cut.chunks > 2
    # The engine alone does not know which files the user named.
    apart = ("chunks", "memory_budget_bytes", "peak_rss_bytes", "runtimes", "float_files", "quant_files")
    changed = {name: getattr(whole, name) for name in apart}
    assert dataclasses.replace(cut, **changed) == whole
