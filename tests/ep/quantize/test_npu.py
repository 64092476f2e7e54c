"""The QNN compiler takes what the stage makes, whole. Timing on its simulator means nothing and is not looked at."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tomllib

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from bench import npu_operators

from ep.quantize.graphs import Builder, conv_net, image, saved, transformer
from modelwright.data import DataSource
from modelwright.errors import InputError
from modelwright.graph import load, summary
from modelwright.models import resolve
from modelwright.pipeline import RecipeChoices, resolve_recipe
from modelwright.stages.quantize import QuantizeParams, TensorOverride, run_quantize, steps_of
from modelwright.stages.quantize._check import narrow_products, require_true_label
from modelwright.stages.quantize._gelu import fuse_gelu
from modelwright.targets import parse_target

pytest.importorskip("onnxruntime_qnn")
ALL_ASKED = ("Concat", "Gelu", "LayerNormalization", "Sigmoid", "TopK", "Where")

# In a child: the plugin prints, and registration lasts as long as the process.
CHILD = """
import sys
import numpy as np, onnxruntime as ort, onnxruntime_qnn as qnn
ort.register_execution_provider_library(qnn.get_ep_name(), qnn.get_library_path())
devices = [d for d in ort.get_ep_devices() if d.ep_name == qnn.get_ep_name()]
options = ort.SessionOptions()
options.log_severity_level = 4
options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
options.add_provider_for_devices(devices, {"backend_path": qnn.get_qnn_htp_path(), "htp_arch": "73", "soc_model": "60"})
session = ort.InferenceSession(sys.argv[1], options)
placed = session.get_provider_graph_assignment_info()
left = [n.op_type for part in placed if part.ep_name == "CPUExecutionProvider" for n in part.get_nodes()]
print("LEFT", *left)
if len(sys.argv) > 2:
    sample = dict(np.load(sys.argv[2]))
    np.save(sys.argv[3], session.run(None, sample)[0])
"""
# QNN's own graph, as it composes it: which of its operators compute with floats (types 0x02nn).
TYPES = """
import glob, json, os, sys
import onnxruntime as ort, onnxruntime_qnn as qnn
ort.register_execution_provider_library(qnn.get_ep_name(), qnn.get_library_path())
devices = [d for d in ort.get_ep_devices() if d.ep_name == qnn.get_ep_name()]
options = ort.SessionOptions()
options.log_severity_level = 4
options.add_provider_for_devices(devices, {
    "backend_path": qnn.get_qnn_htp_path(), "htp_arch": "73", "soc_model": "60",
    "dump_json_qnn_graph": "1", "json_qnn_graph_dir": sys.argv[2]})
ort.InferenceSession(sys.argv[1], options)
for path in glob.glob(os.path.join(sys.argv[2], "*.json")):
    graph = json.load(open(path)).get("graph", {"nodes": {}})
    for node in graph["nodes"].values():
        names = (*node["input_names"], *node["output_names"])
        if any(graph["tensors"][name]["data_type"] >> 8 == 2 for name in names):
            print("FLOAT", node["type"])
        print("COMPOSED", node["type"])
"""
BOUNDS = {"w8a8": 0.90, "w8a16": 0.95, "w16a16": 0.95}


def ask(*words: object) -> list[str]:
    done = subprocess.run([sys.executable, "-c", CHILD, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return next(line for line in done.stdout.splitlines() if line.startswith("LEFT")).split()[1:]


@pytest.mark.parametrize("word", BOUNDS)
def test_a_conv_net_runs_whole_on_the_simulated_npu(tmp_path, word):
    work = tmp_path / "work"
    work.mkdir()
    source = saved(conv_net(), tmp_path)
    params = QuantizeParams(word, samples=8, op_types=("all",))
    run_quantize(source, str(work), params, DataSource())
    np.savez(tmp_path / "in.npz", **image(50))
    left = ask(work / "model.onnx", tmp_path / "in.npz", tmp_path / "out.npy")
    assert set(left) <= {"QuantizeLinear", "DequantizeLinear"}
    session = ort.InferenceSession(source, providers=["CPUExecutionProvider"])
    before = session.run(None, image(50))[0].ravel()
    after = np.load(tmp_path / "out.npy").ravel()
    cosine = before @ after / np.linalg.norm(before) / np.linalg.norm(after)
    assert cosine > BOUNDS[word]


@pytest.mark.parametrize("word", ["w8a16"])
def test_a_transformer_is_claimed_but_for_the_operator_that_the_npu_lacks(tmp_path, word):
    work = tmp_path / "work"
    work.mkdir()
    run_quantize(saved(transformer(), tmp_path), str(work), QuantizeParams(word, samples=4), DataSource())
    left = ask(work / "model.onnx")
    # A bare Erf has no HTP form, in no precision.
    assert set(left) <= {"QuantizeLinear", "DequantizeLinear", "Erf"}


def composed(path, folder):
    """The operators of QNN's own graph: all, and those that read or write floats."""
    folder.mkdir()
    words = [sys.executable, "-c", TYPES, str(path), str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(("FLOAT", "COMPOSED"))]
    return [[line[1] for line in lines if line[0] == word] for word in ("COMPOSED", "FLOAT")]


def test_nothing_between_the_products_of_an_npu_is_float(tmp_path):
    """Softmax, norms and residuals of a w8a8 transformer: 16-bit integers with `scope`, floats without it."""
    source = saved(transformer(), tmp_path)
    made = {}
    for scope in (None, "qnn"):
        work = tmp_path / str(scope)
        work.mkdir()
        params = QuantizeParams("w8a8", samples=8, pairs="all", scope=scope)
        outcome = run_quantize(source, str(work), params, DataSource())
        whole, floats = composed(work / "model.onnx", work / "graph")
        made[scope] = (set(ask(work / "model.onnx")), whole, floats, outcome)
    _, _, before, _ = made[None]
    left, whole, after, outcome = made["qnn"]
    assert {"Softmax", "LayerNorm", "ElementWiseAdd"} <= set(before)
    assert set(after) <= {"Cast", "Quantize"}, "the mask comes as integers and becomes a float once"
    # A bare Erf has no HTP form, in no precision.
    assert left <= {"QuantizeLinear", "DequantizeLinear", "Erf"}
    assert {"Softmax", "LayerNorm", "Convert"} <= set(whole)
    assert outcome.between > 0
    assert outcome.precision == "w8a8"


def gelu(form: str, root: float = 2**0.5) -> onnx.ModelProto:
    """Between two products, in one of the ways in which exporters write it."""
    make = Builder(3)
    root_, one, half = (
        make.constant(*item) for item in (("r", np.float32(root)), ("one", np.float32(1)), ("h", np.float32(0.5)))
    )
    x = make.linear("x", "up", 16, 32)
    gate = make.add("Add", [make.add("Erf", [make.add("Div", [x, root_], "scaled")], "erf"), one], "gate")
    if form == "x first":
        y = make.add("Mul", [make.add("Mul", [x, gate], "whole"), half], "y")
    elif form == "half of x":
        y = make.add("Mul", [make.add("Mul", [x, half], "halved"), gate], "y")
    else:
        y = make.add("Mul", [x, make.add("Mul", [gate, half], "share")], "y")
    make.linear(y, "down", 32, 8)
    shown = ["down", "erf"] if form == "shown" else ["down"]
    return make.model(
        [onnx.helper.make_tensor_value_info("x", 1, [4, 16])],
        [onnx.helper.make_tensor_value_info(name, 1, [4, 8 if name == "down" else 32]) for name in shown],
    )


@pytest.mark.parametrize("form", ["x first", "half of x", "half of the share"])
def test_a_gelu_of_five_operators_becomes_one_with_the_same_answers(form):
    before, after = gelu(form), gelu(form)
    assert fuse_gelu(after) == 1
    assert [node.op_type for node in after.graph.node if node.op_type in ("Erf", "Gelu", "Div")] == ["Gelu"]
    x = np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32)
    answers = [
        ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        for model in (before, after)
    ]
    np.testing.assert_allclose(*answers, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", [gelu("x first", root=1.5), gelu("shown")])
def test_what_is_no_gelu_or_is_shown_in_between_stays_as_it_is(model):
    assert fuse_gelu(model) == 0


@pytest.mark.parametrize(("precision", "scope"), [("w8a8", "qnn"), ("w8a16", None)])
def test_the_npu_takes_a_gelu_on_integers_and_no_erf_is_left_to_the_cpu(tmp_path, precision, scope):
    work = tmp_path / "work"
    work.mkdir()
    params = QuantizeParams(precision, samples=4, pairs="all", scope=scope)
    run_quantize(saved(gelu("x first"), tmp_path), str(work), params, DataSource())
    assert set(ask(work / "model.onnx")) <= {"QuantizeLinear", "DequantizeLinear"}
    whole, floats = composed(work / "model.onnx", work / "graph")
    assert "Gelu" in whole
    assert floats == []


@pytest.mark.parametrize("asked", ["erf", "gate"])
def test_a_gelu_of_which_a_part_is_asked_about_by_name_stays_as_it_is(asked):
    model = gelu("x first")
    assert any(asked in (node.name, *node.output) for node in model.graph.node)
    assert fuse_gelu(model, {asked}) == 0


def test_a_constant_of_more_axes_than_what_it_scales_keeps_the_gelu_apart():
    """It gives the answer as many axes, which one operator would not."""
    text = "(float[4] x) => (float[1,4] y) <float r = {1.4142135}, float[1,1] one = {1.0}, float h = {0.5}>"
    text += " { s = Div(x, r) e = Erf(s) g = Add(e, one) w = Mul(x, g) y = Mul(w, h) }"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    for node in model.graph.node:
        node.name = node.output[0]
    assert fuse_gelu(model) == 0


def test_a_gelu_of_which_a_branch_reads_a_part_stays_as_it_is():
    """The branch would read what nobody makes any more: a good model became one that does not open."""
    model = gelu("x first")
    reads = onnx.helper.make_graph(
        [onnx.helper.make_node("Identity", ["erf"], ["t"])], "then", [], [onnx.ValueInfoProto(name="t")]
    )
    branch = onnx.helper.make_node("If", ["cond"], ["z"], name="if", then_branch=reads, else_branch=reads)
    model.graph.node.append(branch)
    assert fuse_gelu(model) == 0


def test_gelus_one_behind_the_other_all_become_one_operator():
    one = "s{0} = Div({1}, r) e{0} = Erf(s{0}) g{0} = Add(e{0}, one) w{0} = Mul({1}, g{0}) y{0} = Mul(w{0}, h)"
    body = " ".join(one.format(number, f"y{number - 1}") for number in range(1, 4))
    weights = "float r = {1.4142135}, float one = {1.0}, float h = {0.5}"
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[4] y0) => (float[4] y3) <{weights}> {{ {body} }}'
    before, after = onnx.parser.parse_model(text), onnx.parser.parse_model(text)
    for node in after.graph.node:
        node.name = node.output[0]
    assert fuse_gelu(after) == 3
    assert [(node.op_type, *node.input, *node.output) for node in after.graph.node] == [
        ("Gelu", f"y{number}", f"y{number + 1}") for number in range(3)
    ]
    x = np.linspace(-2, 2, 4, dtype=np.float32)
    answers = [
        ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"y0": x})[0]
        for model in (before, after)
    ]
    np.testing.assert_allclose(*answers, rtol=1e-4, atol=1e-5)


def test_a_recipe_for_the_npu_says_whose_operators_it_quantizes(tmp_path):
    source = resolve(saved(transformer(), tmp_path))
    scopes = {
        (target, precision): resolve_recipe(
            source, parse_target(target), RecipeChoices(precision=precision)
        ).quantize.scope
        for target in ("qnn-npu", "cpu", "dml-gpu")
        for precision in ("w8a8", "w8a16")
    }
    assert {key for key, scope in scopes.items() if scope} == {("qnn-npu", "w8a8")}
    assert scopes["qnn-npu", "w8a8"] == "qnn"


def test_products_keep_the_width_that_the_label_says(tmp_path):
    """What lies between is wider; every product reads and writes 8 bits, and says so."""
    work = tmp_path / "work"
    work.mkdir()
    params = QuantizeParams("w8a8", samples=8, pairs="all", scope="qnn")
    run_quantize(saved(transformer(), tmp_path), str(work), params, DataSource())
    model = onnx.load(work / "model.onnx")
    found = narrow_products(model, 8)
    assert found.count == found.of > 0
    stored = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    quantizers = {node.input[0]: stored[node.input[2]] for node in model.graph.node if node.op_type == "QuantizeLinear"}
    products = [node for node in model.graph.node if node.op_type in ("MatMul", "Gemm")]
    assert {quantizers[node.output[0]] for node in products} == {onnx.TensorProto.UINT8}
    softmax = next(node for node in model.graph.node if node.op_type == "Softmax")
    assert quantizers[softmax.output[0]] == onnx.TensorProto.UINT16


def test_what_a_repair_asks_for_in_16_bits_beside_is_taken_whole_and_leaves_the_label_true(tmp_path):
    source = saved(transformer(), tmp_path)
    asked = next(node for node in onnx.load(source).graph.node if node.op_type == "MatMul")
    work = tmp_path / "work"
    work.mkdir()
    overrides = (TensorOverride(asked.output[0], "uint16"),)
    params = QuantizeParams("w8a8", samples=4, pairs="all", scope="qnn", overrides=overrides)
    assert run_quantize(source, str(work), params, DataSource()).precision == "w8a8"
    model = onnx.load(work / "model.onnx")
    found, every = (narrow_products(model, 8, names) for names in ({asked.output[0]}, ()))
    assert (found.count, every.of - every.count) == (found.of, 1)
    assert set(ask(work / "model.onnx")) <= {"QuantizeLinear", "DequantizeLinear", "Erf"}


def test_a_label_is_refused_where_products_read_another_width(tmp_path):
    run_quantize(saved(transformer(), tmp_path), str(tmp_path), QuantizeParams("w8a16", samples=4), DataSource())
    made = load(tmp_path / "model.onnx")
    with pytest.raises(InputError, match="label is not true: 0 of"):
        require_true_label(
            summary(made).precision, steps_of("w8a8"), QuantizeParams("w8a8"), 0, narrow_products(made.model, 8)
        )


@pytest.mark.parametrize(
    "operator", ["Add", "Softmax", "Erf", *(pytest.param(name, marks=pytest.mark.proof) for name in ALL_ASKED)]
)
def test_the_table_of_operators_is_what_the_compiler_answers(operator):
    """Asked again with the same node tests; the library may be another than the one that filled the table."""
    told = tomllib.loads(npu_operators.TABLE.read_text())
    if importlib.metadata.version("onnxruntime-qnn") not in told["source"]:
        pytest.skip("the table is of another version of QNN: run `python -m bench.npu_operators`")
    assert npu_operators.run([operator])[operator] == told["operators"][operator]
