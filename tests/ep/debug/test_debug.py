"""What `debug` says about planted faults, odd inputs, and models that are not statically quantized."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import platform
import re
import sys

import numpy as np
import onnx
import onnxruntime.quantization as q
import psutil
import pytest
from onnx import TensorProto, helper, numpy_helper

from ep.debug.nets import SHAPE, chain, deep, planted_outlier, quantized, write_samples
from modelwright._json import dumps
from modelwright.data import DataSource
from modelwright.data._rows import selected
from modelwright.diagnosis import DebugOptions, debug
from modelwright.errors import InputError, UsageError
from modelwright.stages.quantize import QuantizeParams, run_quantize
from modelwright.targets import parse_target
from modelwright.vocabulary import Data

INT8 = {"weight_type": q.QuantType.QInt8, "activation_type": q.QuantType.QUInt8}
HAS_QNN = importlib.util.find_spec("onnxruntime_qnn") is not None and platform.machine() == "x86_64"
needs_qnn = pytest.mark.skipif(not HAS_QNN or sys.platform != "linux", reason="the QNN simulator is not installed")


def pair(folder, wanted, got):
    onnx.save(wanted, folder / "float.onnx")
    onnx.save(got, folder / "quant.onnx")
    return folder / "float.onnx", folder / "quant.onnx"


def compared(folder, wanted, got, samples=4):
    data = write_samples(folder, samples)
    return debug(*pair(folder, wanted, got), DebugOptions(data=Data(str(data), samples=samples)))


def by_stage(folder, wanted, precision, **params):
    """Quantized by the product's own stage; the paths of both models."""
    onnx.save(wanted, folder / "float.onnx")
    (folder / "out").mkdir()
    run_quantize(str(folder / "float.onnx"), str(folder / "out"), QuantizeParams(precision, **params), DataSource())
    return folder / "float.onnx", folder / "out"


def test_an_outlier_channel_is_named_as_the_origin(tmp_path):
    wanted = planted_outlier(deep())
    report = compared(tmp_path, wanted, quantized(wanted, tmp_path, **INT8))
    first = report.originators[0]
    assert first.node == "layer3/gemm"
    assert first.origin_share > 0.9
    assert report.by_op_type[0].name == "Gemm"
    assert report.by_module[0].name == "layer3"
    # Everything behind inherits the noise, and is not blamed for it.
    heirs = [row for row in report.activations if row.tensor_name in ("r4", "y")]
    assert all(row.cumulative_sqnr_db < 15 and row.origin_share < 0.05 for row in heirs)


def test_a_saturated_activation_is_named_as_the_origin(tmp_path):
    wanted = deep()
    got = quantized(wanted, tmp_path, **INT8)
    scale = next(item for item in got.graph.initializer if item.name == "r2_scale")
    scale.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(scale) * np.float32(0.15), "r2_scale"))
    report = compared(tmp_path, wanted, got)
    first = report.originators[0]
    assert first.tensor_name == "r2"
    assert first.clip_fraction > 0.1
    assert first.clip_noise_share > 0.9


def test_float_weights_that_onnxruntime_takes_back_are_noticed(tmp_path):
    """A Gemm left in float between quantized tensors: the graph is fine, what runs is not."""
    wanted = planted_outlier(deep())
    got = quantized(wanted, tmp_path, **INT8, nodes_to_exclude=["layer3/gemm", "layer3/relu"])
    report = compared(tmp_path, wanted, got)
    (row,) = report.model_outputs
    assert row.cumulative_sqnr_db > 25
    assert row.executed_sqnr_db < row.cumulative_sqnr_db - 10
    assert any("layer3/gemm" in note and "by itself" in note for note in report.notes)


@pytest.mark.parametrize(("precision", "mode"), [("fp16", "fp16"), ("dynamic", "dynamic"), ("int4", "weight-only")])
def test_models_without_pairs_are_compared_too(tmp_path, precision, mode):
    wanted = chain()
    paths = by_stage(tmp_path, wanted, precision, op_types=("MatMul",) if precision != "fp16" else (), block_size=16)
    report = debug(*paths, DebugOptions(data=Data(samples=2)))
    assert (report.status, report.mode) == ("ok", mode)
    assert "w2" in [row.weight_name for row in report.weights]
    assert report.model_outputs[0].cumulative_sqnr_db is not None
    assert any(row.cumulative_sqnr_db is not None for row in report.activations)
    assert (precision == "fp16") == any(row.local_sqnr_db is not None for row in report.activations)


def test_large_weights_stay_on_disk_and_are_still_compared(tmp_path):
    """Initializers of 64 KiB and more are read from the file, and so is external data."""
    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array((rng.standard_normal((64, 4096)) / 8).astype(np.float32), "big")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "big"], ["y"], name="product")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(SHAPE))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [SHAPE[0], 4096])],
        [weight],
    )
    wanted = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    got = quantized(wanted, tmp_path, **INT8)
    inside = compared(tmp_path, wanted, got)
    (tmp_path / "external").mkdir()
    onnx.save_model(wanted, str(tmp_path / "external" / "float.onnx"), save_as_external_data=True, location="w.bin")
    outside = debug(
        tmp_path / "external" / "float.onnx",
        tmp_path / "quant.onnx",
        DebugOptions(data=Data(str(tmp_path / "data.npz"), samples=4)),
    )
    assert inside.weights[0].weight_sqnr_db == outside.weights[0].weight_sqnr_db > 35
    assert inside.activations == outside.activations


def test_rows_and_json_are_the_same_in_every_process(tmp_path):
    wanted = chain()
    paths = pair(tmp_path, wanted, quantized(wanted, tmp_path, **INT8))
    first, second = (debug(*paths, DebugOptions(data=Data(samples=2))) for _ in range(2))
    assert first.activations == second.activations
    document = json.loads(dumps(first), parse_constant=lambda name: pytest.fail(name))
    assert {"activations", "weights", "model_outputs", "summary"} <= document.keys()
    assert {"tensor_name", "local_sqnr_db", "cumulative_sqnr_db"} <= document["activations"][0].keys()
    assert document["summary"]["local"].keys() == {"count", "mean", "std", "min", "max"}


def test_nothing_is_written_beside_the_models(tmp_path):
    wanted, folder = chain(), tmp_path / "models"
    folder.mkdir()
    paths = pair(folder, wanted, quantized(wanted, tmp_path, **INT8))
    before = sorted(folder.iterdir())
    folder.chmod(0o555)
    try:
        debug(*paths, DebugOptions(data=Data(samples=1)))
    finally:
        folder.chmod(0o755)
    assert sorted(folder.iterdir()) == before


def test_different_models_have_no_match(tmp_path):
    other = chain()
    for node in other.graph.node:
        node.name = f"other/{node.name}"
        node.input[:] = [name if name == "x" else f"{name}_b" for name in node.input]
        node.output[:] = [f"{name}_b" for name in node.output]
    for item in other.graph.initializer:
        item.name = f"{item.name}_b"
    other.graph.output[0].name = "y_b"
    report = compared(tmp_path, chain(), quantized(other, tmp_path, **INT8))
    assert report.status == "no_match"
    assert "no tensor and no weight" in report.reason
    assert report.model_outputs == report.activations == ()


def test_other_inputs_have_no_match(tmp_path):
    report = compared(tmp_path, chain(), deep_with_input("picture"))
    assert (report.status, report.samples) == ("no_match", 0)
    assert "the inputs differ: x and picture" in report.reason


def deep_with_input(name):
    model = deep()
    model.graph.input[0].name = name
    model.graph.node[0].input[0] = name
    return model


def test_nan_in_an_output_fails_and_never_vanishes(tmp_path):
    wanted = chain()
    got = quantized(wanted, tmp_path, **INT8)
    scale = next(item for item in got.graph.initializer if item.name == "y_scale")
    scale.CopyFrom(numpy_helper.from_array(np.array(np.nan, np.float32), "y_scale"))
    report = compared(tmp_path, wanted, got)
    assert report.status == "failed"
    assert "NaN" in report.reason
    assert report.model_outputs[0].failed == 4
    assert report.model_outputs[0].cumulative_sqnr_db is None
    dumps(report)


@pytest.mark.parametrize("samples", [0, -1])
def test_samples_below_one_are_a_usage_error(tmp_path, samples):
    with pytest.raises(UsageError, match="samples"):
        debug(tmp_path, tmp_path, DebugOptions(data=Data(samples=samples)))


def test_a_missing_file_is_said_by_name(tmp_path):
    with pytest.raises(InputError, match=r"gone\.onnx does not exist"):
        debug(tmp_path / "gone.onnx", tmp_path / "gone.onnx")


def test_pixels_are_never_scaled_by_guess(tmp_path):
    wanted = chain()
    paths = pair(tmp_path, wanted, quantized(wanted, tmp_path, **INT8))
    pixels = np.random.default_rng(0).integers(0, 256, (3, *SHAPE), dtype=np.uint8)
    np.savez(tmp_path / "pixels.npz", x=pixels, label=np.zeros(3, np.int64))
    np.savez(tmp_path / "floats.npz", x=(pixels / 255).astype(np.float32))
    with pytest.raises(InputError, match="holds pixels"):
        debug(*paths, DebugOptions(data=Data(str(tmp_path / "pixels.npz"), samples=3)))
    scaled = debug(*paths, DebugOptions(data=Data(str(tmp_path / "pixels.npz"), samples=3, scale=1 / 255)))
    plain = debug(*paths, DebugOptions(data=Data(str(tmp_path / "floats.npz"), samples=3)))
    assert scaled.activations == plain.activations


@needs_qnn
def test_the_same_model_is_compared_on_the_simulator(tmp_path):
    got = quantized(chain(), tmp_path, **INT8)
    onnx.save(got, tmp_path / "quant.onnx")
    options = DebugOptions(data=Data(samples=1), target=parse_target("qnn-npu"))
    report = debug(tmp_path / "quant.onnx", options=options)
    assert (report.status, report.mode) == ("ok", "same-model")
    assert report.runtimes.simulated
    assert dict(report.runtimes.candidate_nodes)["QNNExecutionProvider"] > 0
    assert report.model_outputs[0].executed_sqnr_db is None or report.model_outputs[0].executed_sqnr_db > 25
    assert len(report.activations) >= 4
    assert any("change how the EP cuts" in note for note in report.notes)


def test_the_sample_that_the_seed_draws_is_the_one_that_is_fed(tmp_path):
    """The report of one sample is the report of a file that holds only that one."""
    wanted = chain()
    paths = pair(tmp_path, wanted, quantized(wanted, tmp_path, **INT8))
    many = write_samples(tmp_path, 4)
    np.savez(tmp_path / "one.npz", x=np.load(many)["x"][selected(4, 1, 0)])
    one = debug(*paths, DebugOptions(data=Data(str(tmp_path / "one.npz"), samples=1)))
    assert one.activations == debug(*paths, DebugOptions(data=Data(str(many), samples=1))).activations


def test_what_was_compared_before_the_child_died_is_the_answer(tmp_path):
    wanted = deep()
    models = pair(tmp_path, wanted, quantized(wanted, tmp_path, **INT8))

    def kill(progress):
        if re.search(r"sample \d\d", progress.message):
            for child in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()

    # Enough for seconds: on a busy machine this process hears of a sample when many more are done.
    data = write_samples(tmp_path, 4096)
    report = debug(*models, DebugOptions(data=Data(str(data), samples=4096)), on_progress=kill)
    assert report.status == "crashed"
    assert "killed; 7 of 7 tensors were compared" in report.reason
    assert report.weights


def test_a_function_that_gives_the_samples_runs_once(tmp_path):
    wanted = deep()
    models = pair(tmp_path, wanted, quantized(wanted, tmp_path, **INT8))
    write_samples(tmp_path, 3)
    (tmp_path / "reader.py").write_text(
        "from pathlib import Path\n\nimport numpy as np\n\n\ndef samples():\n"
        "    with Path(__file__).with_name('runs').open('a') as file:\n        file.write('x')\n"
        f"    yield from ({{'x': np.full({tuple(SHAPE)}, step, np.float32)}} for step in range(3))\n"
    )
    report = debug(
        *models, DebugOptions(data=Data(f"{tmp_path / 'reader.py'}:samples", samples=3), memory_budget=1 << 20)
    )
    assert report.samples == 3
    assert (tmp_path / "runs").read_text() == "x"


def with_batch(model, batch):
    found = onnx.ModelProto()
    found.CopyFrom(model)
    for value in (*found.graph.input, *found.graph.output):
        value.type.tensor_type.shape.dim[0].Clear()
        if batch is not None:
            value.type.tensor_type.shape.dim[0].dim_param = batch
    return found


@pytest.mark.parametrize("batch", ["rows", None])
@pytest.mark.parametrize("given", [True, False])
def test_a_dynamic_float_model_takes_its_sizes_from_the_static_build(tmp_path, batch, given):
    static = quantized(chain(), tmp_path, **INT8)
    data = Data(str(write_samples(tmp_path, 4)), samples=4) if given else Data(samples=4)
    report = debug(*pair(tmp_path, with_batch(chain(), batch), static), DebugOptions(data=data))
    assert (report.status, report.samples) == ("ok", 4)
    assert report.worst_output_db > 20


def ending(op_type, name):
    model = chain()
    del model.graph.output[:]
    if op_type is not None:
        model.graph.node.append(helper.make_node(op_type, ["y"], [name], name="end"))
    else:
        model.graph.node[-1].output[0] = name
    model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [SHAPE[0], 10]))
    return model


@pytest.mark.parametrize(
    ("op_type", "name", "classes"),
    [
        ("Softmax", "y2", True),
        (None, "logits", True),
        (None, "embedding", False),
        (None, "boxes", False),
        ("Sigmoid", "scores", False),
        ("Tanh", "out", False),
    ],
)
def test_top_1_is_told_of_classes_only(tmp_path, op_type, name, classes):
    wanted = ending(op_type, name)
    report = compared(tmp_path, wanted, quantized(wanted, tmp_path, **INT8))
    assert (report.model_outputs[0].top1 is not None) is classes


def test_labels_make_an_output_without_a_telling_name_classes(tmp_path):
    wanted = ending(None, "out")
    values = np.random.default_rng(0).standard_normal((2, *SHAPE)).astype(np.float32)
    np.savez(tmp_path / "labelled.npz", x=values, label=np.array([3, 7]))
    files = pair(tmp_path, wanted, quantized(wanted, tmp_path, **INT8))
    report = debug(*files, DebugOptions(data=Data(str(tmp_path / "labelled.npz"), samples=2)))
    assert report.model_outputs[0].top1 is not None


def test_rows_name_the_operator_and_its_node(tmp_path):
    wanted = deep()
    wanted.graph.node[0].name = ""
    report = compared(tmp_path, wanted, quantized(wanted, tmp_path, **INT8))
    named = {row.tensor_name: row.operator for row in report.activations}
    assert named["r2"] == "Gemm layer2/gemm"
    assert named["x"] == "(input)"
    assert named["r0"] == "Gemm(g0)"


def _listed(folder, name, size):
    """Scores that leave as a sequence of tensors and as maps."""
    weights = size * np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("SplitToSequence", ["y"], ["parts"], axis=1),
        helper.make_node("ZipMap", ["y"], ["maps"], domain="ai.onnx.ml", classlabels_strings=["a", "b", "c"]),
    ]
    kind = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    outputs = [
        helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, None),
        helper.make_value_info("maps", helper.make_sequence_type_proto(kind)),
    ]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])]
    graph = helper.make_graph(nodes, "listed", given, outputs, [numpy_helper.from_array(weights, "w")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / name)
    return folder / name


def test_outputs_that_are_sequences_and_maps_are_compared_by_all_their_values(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.random.default_rng(1).standard_normal((6, 4)).astype(np.float32))
    wanted, got = _listed(tmp_path, "float.onnx", 1.0), _listed(tmp_path, "other.onnx", 1.1)
    report = debug(wanted, got, DebugOptions(data=Data(str(tmp_path / "d.npz"), samples=6)))
    assert (report.status, [item.tensor_name for item in report.activations]) == ("ok", ["y"])
    # A tenth of everything is wrong: 20 dB below it.
    assert [item.output_name for item in report.model_outputs] == ["parts", "maps"]
    for item in report.model_outputs:
        assert item.cumulative_sqnr_db == pytest.approx(20.0, abs=0.01)
        assert item.executed_sqnr_db == pytest.approx(20.0, abs=0.01)


def test_a_model_of_integers_alone_is_compared_by_its_outputs(tmp_path):
    node = helper.make_node("Add", ["x", "x"], ["y"])
    io = [[helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", 4])] for name in ("x", "y")]
    proto = helper.make_model(
        helper.make_graph([node], "integers", *io), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    np.savez(tmp_path / "d.npz", x=np.arange(12, dtype=np.int32).reshape(3, 4))
    report = debug(*pair(tmp_path, proto, proto), DebugOptions(data=Data(str(tmp_path / "d.npz"), samples=3)))
    assert report.model_outputs[0].cumulative_reason == "identical"
