"""What a request may ask for, what is refused, and that the same request gives the same bytes anywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

import modelwright as mw
from ep.quantize.graphs import conv_net, image, saved, transformer
from modelwright._json import dumps
from modelwright._typed import MisfitError, typed
from modelwright.data import DataSource
from modelwright.errors import InputError
from modelwright.stages.quantize import QuantizeParams, TensorOverride, _save, run_quantize
from modelwright.worker import run
from support.models import model, value, weight


def made(tmp_path: Path, model: onnx.ModelProto, params: QuantizeParams, name: str = "work"):
    work = tmp_path / name
    work.mkdir()
    outcome = run_quantize(saved(model, tmp_path), str(work), params, DataSource())
    return outcome, onnx.load(work / "model.onnx")


def stored(model: onnx.ModelProto) -> dict[str, str]:
    return {item.name: onnx.TensorProto.DataType.Name(item.data_type) for item in model.graph.initializer}


def test_why_nothing_can_be_quantized_is_told_by_what_the_model_has(tmp_path):
    """An LSTM has all the weights; what stands around it could be integers, and would gain nothing."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2], name="turn"),
        helper.make_node("LSTM", ["t", "w", "r"], ["y"], hidden_size=4, name="lstm"),
    ]
    weights = [weight("w", 1, 16, 8), weight("r", 1, 16, 4)]
    net = model(nodes, [value("x", shape=[2, 5, 8])], [value("y", shape=[5, 1, 2, 4])], weights)
    with pytest.raises(InputError, match="nothing can be quantized") as raised:
        made(tmp_path, net, QuantizeParams("w8a8", samples=2, pairs="needed"))
    assert raised.value.cause == (
        "of its operators only Transpose could be, and they gain nothing without a product; "
        "its weights belong to LSTM, which stay float"
    )


def test_excluded_nodes_stay_float(tmp_path):
    outcome, model = made(tmp_path, conv_net(), QuantizeParams("w8a8", samples=2, nodes_to_exclude=("c2/Conv",)))
    kept = next(node for node in model.graph.node if node.name == "c2/Conv")
    assert kept.input[1] == "c2.w"
    assert stored(model)["c2.w"] == "FLOAT"
    assert outcome.excluded == ("c2/Conv",)
    tally = next(item for item in outcome.ops if item.op_type == "Conv")
    assert (tally.reduced, tally.untouched) == (1, 1)


def test_chosen_operators_are_the_only_ones(tmp_path):
    outcome, _ = made(tmp_path, conv_net(), QuantizeParams("w8a8", samples=2, op_types=("Conv",)))
    assert {item.op_type for item in outcome.ops if not item.reduced} >= {"Gemm", "MaxPool", "Flatten", "Add"}
    assert any("stays float" in warning for warning in outcome.warnings)


def test_eight_bit_activations_leave_softmax_and_norms_alone_unless_all_is_asked(tmp_path):
    safe, _ = made(tmp_path, transformer(), QuantizeParams("w8a8", samples=2), "safe")
    every, _ = made(tmp_path, transformer(), QuantizeParams("w8a8", samples=2, op_types=("all",)), "every")
    softmax = [next(i for i in outcome.ops if i.op_type == "Softmax") for outcome in (safe, every)]
    assert (softmax[0].untouched, softmax[1].reduced) == (1, 1)


def test_a_tensor_can_have_another_type(tmp_path):
    overrides = (TensorOverride("c2.w", "int16"), TensorOverride("c2", "uint16"))
    params = QuantizeParams("w8a8", samples=2, overrides=overrides)
    _, model = made(tmp_path, conv_net(), params)
    types = stored(model)
    assert types["c2.w_quantized"] == "INT16"
    assert types["c1.w_quantized"] == "INT8"
    assert types["c2_zero_point"] == "UINT16"
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert np.isfinite(session.run(None, image(0))[0]).all()


FIELDS = [
    {"per_channel": False},
    {"symmetric_activations": True},
    {"symmetric_weights": False, "per_channel": False},
    {"reduce_range": False},
    {"samples": 3},
    {"nodes_to_exclude": ("c1/Conv",)},
    {"op_types": ("Conv",)},
    {"op_types": ("all",)},
]


@pytest.mark.parametrize("change", FIELDS, ids=str)
def test_every_field_changes_the_result(tmp_path, change):
    _, before = made(tmp_path, conv_net(), QuantizeParams("w8a8", samples=2), "before")
    after = made(tmp_path, conv_net(), QuantizeParams("w8a8", **{"samples": 2, **change}), "after")[1]
    assert before.SerializeToString() != after.SerializeToString()


@pytest.mark.parametrize("change", [{"block_size": 64}, {"symmetric_weights": False}], ids=str)
def test_int4_fields_change_the_result(tmp_path, change):
    _, before = made(tmp_path, transformer(), QuantizeParams("int4"), "before")
    _, after = made(tmp_path, transformer(), QuantizeParams("int4", **change), "after")
    assert before.SerializeToString() != after.SerializeToString()


def test_operators_can_stay_out_of_fp16(tmp_path):
    _, model = made(tmp_path, conv_net(), QuantizeParams("fp16", op_types_float=("Gemm",)))
    assert stored(model)["fc.w"] == "FLOAT"
    assert stored(model)["c1.w"] == "FLOAT16"


MISTAKES = [
    ({"nodes_to_exclude": ("c2/Con",)}, "no node"),
    ({"overrides": (TensorOverride("c2.v", "int8"),)}, "no tensor"),
    ({"op_types": ("Convv",)}, "no operator"),
    ({"precision": "int4", "block_size": 7}, "block"),
    ({"percentile": 3.0, "method": "percentile"}, "percentile"),
    ({"samples": 0}, "samples"),
    ({"precision": "dynamic", "overrides": (TensorOverride("c2.w", "int8"),)}, "dynamic"),
    (
        {
            "nodes_to_exclude": (
                "c1/Conv",
                "c2/Conv",
                "logits/Gemm",
                "p/MaxPool",
                "r1/Relu",
                "r2/Relu",
                "flat/Flatten",
            )
        },
        "nothing",
    ),
]


@pytest.mark.parametrize(("change", "words"), MISTAKES, ids=lambda value: str(value)[:40])
def test_mistakes_are_refused(tmp_path, change, words):
    with pytest.raises(InputError, match=words):
        made(tmp_path, conv_net(), QuantizeParams(**{"precision": "w8a8", **change}))


def test_a_known_operator_that_the_model_lacks_is_a_warning(tmp_path):
    outcome, _ = made(tmp_path, conv_net(), QuantizeParams("w8a8", samples=2, op_types=("Conv", "MatMul")))
    assert any("MatMul" in warning for warning in outcome.warnings)


@pytest.mark.parametrize("word", ["w8a8", "dynamic", "int4"])
def test_an_already_quantized_model_is_refused(tmp_path, word):
    made(tmp_path, transformer(), QuantizeParams(word, samples=2), "first")
    (tmp_path / "again").mkdir()
    with pytest.raises(InputError, match="already quantized"):
        run_quantize(
            str(tmp_path / "first" / "model.onnx"),
            str(tmp_path / "again"),
            QuantizeParams("w8a8"),
            DataSource(),
        )


def test_a_compiled_model_is_refused(tmp_path):
    node = onnx.helper.make_node(
        "EPContext",
        ["x"],
        ["y"],
        domain="com.microsoft",
        embed_mode=1,
        ep_cache_context=b"blob",
        main_context=1,
    )
    spec = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph([node], "g", [spec("x", 1, [1])], [spec("y", 1, [1])])
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    )
    onnx.save(model, tmp_path / "compiled.onnx")
    with pytest.raises(InputError, match="already compiled"):
        run_quantize(str(tmp_path / "compiled.onnx"), str(tmp_path), QuantizeParams("w8a8"), DataSource())


CHILD = """
import sys
from modelwright.data import DataSource
from modelwright.stages.quantize import QuantizeParams, run_quantize
run_quantize(sys.argv[1], sys.argv[2], QuantizeParams(sys.argv[3], samples=4), DataSource())
"""


@pytest.mark.parametrize("word", ["w8a8", "w8a16", "fp16", "dynamic", "w4a16"])
def test_the_same_request_gives_the_same_bytes_in_every_process_without_a_word(tmp_path, word):
    source = saved(transformer(), tmp_path)
    results = []
    for index in range(2):
        work = tmp_path / str(index)
        work.mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": str(index)}
        done = subprocess.run(
            [sys.executable, "-c", CHILD, source, str(work), word],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        assert (done.stdout, done.stderr) == ("", "")
        results.append((work / "model.onnx").read_bytes())
    assert results[0] == results[1]
    assert str(tmp_path).encode() not in results[0]


def test_external_weights_in_a_read_only_folder_give_the_same_model(tmp_path):
    inline = saved(transformer(hidden=128), tmp_path)
    locked = tmp_path / "locked"
    locked.mkdir()
    onnx.save(
        onnx.load(inline),
        locked / "float.onnx",
        save_as_external_data=True,
        location="w.data",
        size_threshold=512,
    )
    for item in (*locked.iterdir(), locked):
        item.chmod(0o555)
    here, state = Path.cwd(), np.random.get_state()[1].copy()
    results = []
    for name, path in (("a", inline), ("b", str(locked / "float.onnx"))):
        work = tmp_path / name
        work.mkdir()
        run_quantize(path, str(work), QuantizeParams("w8a8", samples=2), DataSource())
        results.append((work / "model.onnx").read_bytes())
    locked.chmod(0o755)
    assert results[0] == results[1]
    assert Path.cwd() == here
    assert (np.random.get_state()[1] == state).all()
    assert sorted(item.name for item in locked.iterdir()) == ["float.onnx", "w.data"]


def test_weights_in_constant_nodes_are_weights(tmp_path):
    model = conv_net()
    moved = next(item for item in model.graph.initializer if item.name == "c1.w")
    node = onnx.helper.make_node("Constant", [], ["c1.w"], name="held", value=moved)
    model.graph.node.insert(0, node)
    model.graph.initializer.remove(next(item for item in model.graph.initializer if item.name == "c1.w"))
    _, result = made(tmp_path, model, QuantizeParams("w8a8", samples=2))
    assert stored(result)["c1.w_quantized"] == "INT8"


def test_the_stage_runs_in_a_child_and_its_facts_are_plain_json(tmp_path):
    (tmp_path / "work").mkdir()
    call = run_quantize.call(
        saved(conv_net(), tmp_path), str(tmp_path / "work"), QuantizeParams("w8a8", samples=2), DataSource()
    )
    outcome = run(call, timeout=120).unwrap()
    facts = json.loads(dumps(outcome))
    assert facts["measured"] == "w8a8"
    assert facts["calibration"]["random"] is True


def test_a_recipe_with_a_misspelt_field_is_refused():
    assert typed(QuantizeParams, {"precision": "w8a16"}, strict=True) == QuantizeParams("w8a16")
    with pytest.raises(MisfitError, match="per_chanel"):
        typed(QuantizeParams, {"per_chanel": True}, strict=True)


def test_dynamic_reaches_convolutions_when_asked(tmp_path):
    outcome, model = made(tmp_path, conv_net(), QuantizeParams("dynamic", op_types=("all",)))
    assert outcome.measured == "dynamic int8"
    assert {"ConvInteger", "MatMulInteger"} <= {node.op_type for node in model.graph.node}
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert np.isfinite(session.run(None, image(0))[0]).all()


def test_a_result_too_large_for_protobuf_keeps_its_weights_beside_it(tmp_path, monkeypatch):
    whole, _ = made(tmp_path, transformer(), QuantizeParams("w8a8", samples=2), "whole")
    monkeypatch.setattr(_save, "LARGEST", 10_000)
    split, model = made(tmp_path, transformer(), QuantizeParams("w8a8", samples=2), "split")
    assert sorted(item.name for item in (tmp_path / "split").iterdir()) == ["model.onnx", "model.onnx.data"]
    assert split.measured == whole.measured == "w8a8"
    assert stored(model) == stored(onnx.load(tmp_path / "whole" / "model.onnx"))


@pytest.mark.parametrize(("make", "word"), [(conv_net, "w8a8"), (transformer, "w8a8"), (transformer, "dynamic")])
def test_8_bit_weights_use_7_bits_unless_told_otherwise(tmp_path, make, word):
    """The largest product of two neighbours must fit 16 bits, on whatever CPU the model ends up."""
    for reduced, bits, most in ((None, 7, 64), (True, 7, 64), (False, 8, 127)):
        outcome, model = made(tmp_path, make(), QuantizeParams(word, samples=2, reduce_range=reduced), f"{reduced}")
        signed = [item for item in model.graph.initializer if item.data_type == onnx.TensorProto.INT8]
        largest = max(int(np.abs(onnx.numpy_helper.to_array(item).astype(int)).max()) for item in signed)
        assert (outcome.weight_range_bits, largest) == (bits, most)


def test_16_bit_activations_leave_the_weights_all_8_bits(tmp_path):
    outcome, _ = made(tmp_path, conv_net(), QuantizeParams("w8a16", samples=2))
    assert outcome.weight_range_bits == 8


def test_8_bit_numbers_that_the_model_came_with_are_no_weights_of_ours(tmp_path):
    model = conv_net()
    table = onnx.numpy_helper.from_array(np.full(10, -128, np.int8), "table")
    model.graph.initializer.append(table)
    model.graph.node[-1].output[0] = "before"
    model.graph.node.append(onnx.helper.make_node("Cast", ["table"], ["offset"], to=onnx.TensorProto.FLOAT))
    model.graph.node.append(onnx.helper.make_node("Add", ["before", "offset"], ["logits"]))
    outcome, _ = made(tmp_path, model, QuantizeParams("w8a8", samples=2))
    assert outcome.weight_range_bits == 7


@pytest.mark.parametrize("precision", ["w8a8", "dynamic", "w4a32", "fp16"])
def test_the_last_layer_that_is_the_table_of_tokens_turned_is_a_weight_too(tmp_path, precision):
    table = np.random.default_rng(0).normal(size=(320, 64)).astype(np.float32)
    text = "(int64[1,5] ids) => (float[1,5,320] y) "
    text += "{ x = Gather(table, ids) r = Tanh(x) t = Transpose<perm=[1,0]>(table) y = MatMul(r, t) }"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    model.graph.initializer.append(onnx.numpy_helper.from_array(table, "table"))
    outcome, result = made(tmp_path, model, QuantizeParams(precision, samples=2))
    turned = [node for node in result.graph.node if node.op_type == "Transpose"]
    assert len(turned) == (precision == "fp16")
    product = next(item for item in outcome.ops if item.op_type in ("MatMul", "MatMulInteger", "MatMulNBits"))
    assert (product.reduced, product.untouched) == (1, 0)
    assert outcome.output_bytes < outcome.input_bytes * 1.3


def test_what_is_refused_is_called_by_its_name_and_not_by_a_digest_of_the_store(tmp_path, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "home"))
    made(tmp_path, conv_net(), QuantizeParams("dynamic"), "first")
    mine = (tmp_path / "first" / "model.onnx").rename(tmp_path / "mine.onnx")
    with pytest.raises(InputError, match=r"^mine is already quantized"):
        mw.build(mine, "cpu", precision="w8a8")


@pytest.mark.parametrize("word", ["w8a8", "fp16"])
def test_a_model_from_before_ir_4_whose_weights_are_inputs_is_quantized(tmp_path, word):
    proto = conv_net()
    proto.ir_version = 3
    for tensor in proto.graph.initializer:
        proto.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    outcome, written = made(tmp_path, proto, QuantizeParams(word, samples=2))
    assert outcome.measured == word
    onnx.checker.check_model(written)
