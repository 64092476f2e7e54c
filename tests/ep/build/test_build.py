"""Builds through the real stages: nothing twice, nothing lost, nothing called built unchecked."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import onnx
import psutil
import pytest
from onnx import TensorProto, helper, numpy_helper

import modelwright as mw
from modelwright.data import DataSource
from modelwright.data._rows import selected
from modelwright.errors import InputError, WrightError
from modelwright.graph import _load, _summary
from modelwright.models import OnnxSource
from modelwright.pipeline import BuildFailure, RecipeChoices, build, build_all, deliver, plan, resolve_recipe
from modelwright.stages.validate import UNKNOWN, Gate, run_validate
from modelwright.store import Store
from modelwright.targets import parse_target
from modelwright.vocabulary import Data
from support.models import conv_net, mlp, save

EIGHT = ("qnn-npu", "qnn-gpu", "openvino-cpu", "openvino-npu", "openvino-gpu", "cpu", "dml-gpu", "vitisai-npu")


@pytest.fixture
def source(tmp_path):
    return OnnxSource(str(save(conv_net(), tmp_path)))


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "home/store") as opened:
        yield opened


def ran(result):
    return [stage.stage for component in result.components for stage in component.stages if stage.produced]


def test_a_second_build_runs_nothing(source, store):
    recipe = resolve_recipe(source, parse_target("qnn-npu"))
    first = build(source, recipe, store=store)
    assert ran(first) == ["import", "optimize", "quantize", "validate", "check"]
    assert first.passed is None
    assert ran(build(source, recipe, store=store)) == []


def test_a_changed_quantize_field_runs_quantize_and_what_follows(source, store):
    npu = parse_target("qnn-npu")
    build(source, resolve_recipe(source, npu), store=store)
    changed = resolve_recipe(source, npu, file={"quantize": {"samples": 7}})
    assert [step.state for step in plan(source, changed, store=store)] == ["cached", "cached", "run", "later", "later"]
    assert ran(build(source, changed, store=store)) == ["quantize", "validate", "check"]


def test_eight_targets_share_what_they_can_and_the_model_is_read_once(tmp_path, store, monkeypatch):
    model, read = conv_net(), []
    model.producer_name = "a model that no other test has looked at"
    source = OnnxSource(str(save(model, tmp_path)))
    for module, name in ((_load, "_parse"), (_summary, "_summary")):
        monkeypatch.setattr(module, name, _counted(getattr(module, name), read))
    recipes = [resolve_recipe(source, parse_target(name)) for name in EIGHT]
    results = build_all(source, recipes, store=store)
    made = {(stage.stage, stage.key.digest) for result in results for stage in result.components[0].stages}
    counts = Counter(stage for stage, _ in made)
    assert (counts["import"], counts["optimize"], counts["quantize"]) == (1, 1, 1)
    assert [result.target for result in results] == [str(recipe.target) for recipe in recipes]
    assert sorted(read) == ["_parse", "_summary"]


def _counted(function, calls):
    def counted(*args):
        calls.append(function.__name__)
        return function(*args)

    return counted


def test_a_target_that_fails_does_not_take_the_others_with_it(source, store):
    choices = RecipeChoices(precision="fp32", passes=("conv_activation_fusion",))
    recipes = [resolve_recipe(source, parse_target(name), choices) for name in ("qnn-npu", "cpu")]
    npu, cpu = build_all(source, recipes, store=store)
    assert isinstance(npu, BuildFailure)
    assert "conv_activation_fusion does not suit" in npu.error.problem
    assert cpu.passed is True


def test_a_function_of_the_users_is_started_once_for_all_targets_and_the_sizes_of_its_samples(store, tmp_path):
    (tmp_path / "reader.py").write_text(
        "import numpy as np\n"
        "def samples():\n"
        f"    open({str(tmp_path / 'starts')!r}, 'a').write('x')\n"
        "    yield from [{'x': np.ones((2, 4), np.float32)}] * 3\n"
    )
    model, data = save(mlp(), tmp_path), f"{tmp_path / 'reader.py'}:samples"
    builds = mw.build(model, ["qnn-npu", "cpu"], precision="w8a8", data=data, store=store)
    assert [build.recipe.optimize.fix_dims for build in builds] == [(("batch", 2),), ()]
    assert (tmp_path / "starts").read_text() == "x"


def test_no_optimize_leaves_the_graph_as_it_was(source, store):
    result = build(source, resolve_recipe(source, parse_target("cpu"), file={"optimize": False}), store=store)
    assert ran(result) == ["import", "validate"]
    assert [file.digest for file in result.components[0].final.files] == [
        file.digest for file in result.components[0].stages[0].artifact.files
    ]


def test_two_machines_make_the_same_bytes(source, tmp_path):
    digests = []
    for name in ("one", "two"):
        with Store(tmp_path / name / "store") as store:
            result = build(source, resolve_recipe(source, parse_target("qnn-npu:soc=x-elite")), store=store)
            digests.append(
                [(stage.stage, [file.digest for file in stage.artifact.files]) for stage in result.components[0].stages]
            )
    one, two = ([entry for entry in found if entry[0] not in ("validate", "check")] for found in digests)
    assert one == two


def test_a_stage_makes_the_same_bytes_in_a_warm_and_in_a_fresh_process(source, tmp_path):
    recipe = resolve_recipe(source, parse_target("qnn-npu"))
    made = []
    for name, stages in (("warm", [recipe]), ("fresh", [replace(recipe, quantize=None), recipe])):
        with Store(tmp_path / name / "store") as store:
            results = [build(source, step, store=store) for step in stages]
        made.append([file.digest for file in results[-1].components[0].final.files])
    assert made[0] == made[1]


def test_the_folder_is_a_view_without_stale_files_or_paths_of_this_machine(source, store, tmp_path):
    out = tmp_path / "out"
    compiled = build(source, resolve_recipe(source, parse_target("qnn-npu:soc=x-elite")), store=store)
    deliver(compiled, out, store=store)
    assert (out / "model_qnn.bin").exists()
    plain = build(source, resolve_recipe(source, parse_target("cpu")), store=store)
    deliver(plain, out, store=store)
    assert not (out / "model_qnn.bin").exists()
    text = (out / "wright.json").read_text()
    assert str(tmp_path) not in text
    found = json.loads(text)
    assert (found["target"], found["precision"], found["passed"]) == ("cpu", "fp32", True)
    onnx.checker.check_model(str(out / "model.onnx"))


def _outlier_model(folder):
    """One weight a million times the others: 8 bits per tensor keep nothing else."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((16, 16)).astype(np.float32) * 1e-3
    weight[0, 0] = 1e3
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Slice", ["h", "s", "e", "a"], ["y"])],
        "outlier",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 15])],
        [
            numpy_helper.from_array(weight, "w"),
            numpy_helper.from_array(np.array([1]), "s"),
            numpy_helper.from_array(np.array([16]), "e"),
            numpy_helper.from_array(np.array([1]), "a"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return OnnxSource(str(save(model, folder)))


def test_a_result_too_far_from_its_export_is_kept_and_marked(tmp_path, store):
    source = _outlier_model(tmp_path)
    layer = {"quantize": {"per_channel": False}}
    result = build(
        source, resolve_recipe(source, parse_target("cpu"), RecipeChoices(precision="w8a8"), layer), store=store
    )
    assert result.passed is False
    deliver(result, tmp_path / "out", store=store)
    assert json.loads((tmp_path / "out/wright.json").read_text())["passed"] is False
    failed = [check.name for check in result.components[0].validation.checks if check.passed is False]
    assert failed == ["close to the export"] or failed == ["comparable outputs"]


def test_nan_in_the_weights_is_kept_as_it_is_and_cannot_be_quantized(tmp_path, store):
    model = conv_net()
    weight = numpy_helper.to_array(model.graph.initializer[0]).copy()
    weight.flat[0] = np.nan
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight, model.graph.initializer[0].name))
    source = OnnxSource(str(save(model, tmp_path)))
    assert build(source, resolve_recipe(source, parse_target("cpu")), store=store).passed is True
    with pytest.raises(WrightError, match=r"NaN|nan|finite"):
        build(source, resolve_recipe(source, parse_target("qnn-npu")), store=store)


@pytest.mark.parametrize(("precision", "passed"), [("fp32", True), ("fp16", True), ("w8a8", None)])
def test_made_up_inputs_never_prove_what_rounding_costs(source, store, precision, passed):
    recipe = resolve_recipe(source, parse_target("cpu"), RecipeChoices(precision=precision))
    gate = build(source, recipe, store=store).components[0].validation
    assert gate.passed is passed
    assert (UNKNOWN in [check.detail for check in gate.checks]) == (passed is None)


def test_the_gate_says_how_many_samples_it_ran(source, store, tmp_path):
    cpu = parse_target("cpu")
    made_up = build(source, resolve_recipe(source, cpu), store=store).components[0].validation
    assert (made_up.samples, made_up.random_inputs) == (2, True)
    shape = [3, *(dim.dim_value for dim in conv_net().graph.input[0].type.tensor_type.shape.dim[1:])]
    np.savez(tmp_path / "three.npz", **{conv_net().graph.input[0].name: np.ones(shape, np.float32)})
    recipe = resolve_recipe(source, cpu, RecipeChoices(data=Data(str(tmp_path / "three.npz"))))
    given = build(source, recipe, store=store).components[0].validation
    assert (given.samples, given.random_inputs) == (3, False)


def rows_like(path, count, factor=1.0):
    value = conv_net().graph.input[0]
    shape = [count, *(dim.dim_value for dim in value.type.tensor_type.shape.dim[1:])]
    rows = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    rows *= np.asarray(factor, np.float32).reshape(-1, *[1] * (len(shape) - 1))
    np.savez(path, **{value.name: rows}, label=np.zeros(count, np.int64))
    return Data(str(path))


@pytest.mark.parametrize(("count", "held_out"), [(64, 32), (40, 8), (20, 0)])
def test_the_gate_judges_rows_that_calibration_did_not_use_as_far_as_there_are(
    source, store, tmp_path, count, held_out
):
    data = rows_like(tmp_path / "rows.npz", count)
    choices = RecipeChoices(precision="w8a8", data=data)
    gate = build(source, resolve_recipe(source, parse_target("cpu"), choices), store=store).components[0].validation
    assert (gate.samples, gate.held_out) == (min(count, 32), held_out)
    assert gate.note is None
    whole = RecipeChoices(precision="fp32", data=data)
    float_gate = build(source, resolve_recipe(source, parse_target("cpu"), whole), store=store).components[0].validation
    assert float_gate.held_out is None


def test_samples_beyond_what_calibration_saw_are_told(source, store, tmp_path):
    """Of a hundred rows, those that find the ranges are small."""
    used = np.isin(np.arange(100), selected(100, 32, 0))
    data = rows_like(tmp_path / "rows.npz", 100, np.where(used, 1.0, 4.0))
    recipe = resolve_recipe(source, parse_target("qnn-npu"), RecipeChoices(precision="w8a16", data=data, compile=False))
    gate = build(source, replace(recipe, check=None), store=store).components[0].validation
    assert "beyond the range that calibration found" in gate.note


@pytest.mark.parametrize(
    ("name", "tail", "asked"), [("logits", [], True), ("hidden", [], False), ("hidden", ["Softmax"], True)]
)
def test_the_best_class_is_asked_for_where_outputs_are_scores(tmp_path, name, tail, asked):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h" if tail else name])]
    nodes += [helper.make_node(op, ["h"], [name]) for op in tail]
    values = [helper.make_tensor_value_info(item, TensorProto.FLOAT, [1, 8]) for item in ("x", name)]
    weight = numpy_helper.from_array(np.eye(8, dtype=np.float32), "w")
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [weight])
    path = str(save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path))
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32))
    data = DataSource(Data(str(tmp_path / "data.npz")))
    answer = run_validate(path, path, str(tmp_path), Gate(precision="fp32"), data)
    assert ("same best class" in {check.name for check in answer.checks}) == asked


def test_an_artifact_with_other_inputs_fails_its_gate_and_not_the_command(tmp_path):
    wanted, other = conv_net(), conv_net()
    for node in other.graph.node:
        node.input[:] = ["renamed" if name == other.graph.input[0].name else name for name in node.input]
    other.graph.input[0].name = "renamed"
    paths = [str(save(model, tmp_path, name)) for name, model in (("a.onnx", wanted), ("b.onnx", other))]
    shape = [dim.dim_value for dim in wanted.graph.input[0].type.tensor_type.shape.dim]
    np.savez(tmp_path / "data.npz", **{wanted.graph.input[0].name: np.ones((2, *shape[1:]), np.float32)})
    data = DataSource(Data(str(tmp_path / "data.npz")))
    answer = run_validate(paths[1], paths[0], str(tmp_path), Gate(precision="fp32"), data)
    assert not answer.passed
    assert {check.name for check in answer.checks if not check.passed} == {"same inputs and outputs", "runs on the CPU"}


def test_the_gate_sees_a_broken_graph_behind_weights_it_does_not_read(tmp_path):
    good = conv_net()
    good.graph.initializer.append(numpy_helper.from_array(np.zeros((256, 256), np.float32), "unused"))
    bad = onnx.ModelProto()
    bad.CopyFrom(good)
    bad.graph.node[0].attribute.append(helper.make_attribute("no_such_attribute", 1))
    paths = [str(save(model, tmp_path, name)) for name, model in (("good.onnx", good), ("bad.onnx", bad))]
    answers = [run_validate(path, paths[0], str(tmp_path), Gate(precision="fp32"), DataSource()) for path in paths]
    checks = [{check.name: check for check in answer.checks} for answer in answers]
    assert checks[0]["valid ONNX"].passed
    assert not checks[1]["valid ONNX"].passed
    assert "no_such_attribute" in checks[1]["valid ONNX"].detail


def test_a_compiled_model_is_refused(source, store, tmp_path):
    result = build(source, resolve_recipe(source, parse_target("qnn-npu:soc=x-elite")), store=store)
    deliver(result, tmp_path / "out", store=store)
    again = OnnxSource(str(tmp_path / "out/model.onnx"))
    with pytest.raises(InputError, match="already compiled"):
        build(again, resolve_recipe(again, parse_target("cpu")), store=store)


def test_a_pass_whose_operators_the_target_does_not_claim_is_refused_unless_forced(source, store):
    recipe = resolve_recipe(
        source, parse_target("qnn-npu"), RecipeChoices(precision="fp32", passes=("conv_activation_fusion",))
    )
    with pytest.raises(InputError, match="conv_activation_fusion does not suit"):
        build(source, recipe, store=store)
    assert build(source, recipe, store=store, force=True).passed


def _wait_for_the_end_of(home):
    """Children notice that their parent is gone, and end; none may be left that works in this home."""
    while any((process.info["environ"] or {}).get("MODELWRIGHT_HOME") == str(home) for process in _others()):
        time.sleep(0.05)


def _others():
    return (process for process in psutil.process_iter(["environ"]) if process.pid != os.getpid())


@pytest.mark.parametrize(
    "stage",
    [
        "quantize",
        "compile",
        *(pytest.param(name, marks=pytest.mark.proof) for name in ("optimize", "validate", "check")),
    ],
)
def test_a_build_killed_in_any_stage_is_finished_by_the_same_command(source, tmp_path, stage):
    """SIGKILL while the stage is under way; what was done before is not done again."""
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from modelwright.pipeline import build, resolve_recipe\n"
        "from modelwright.models import OnnxSource\n"
        "from modelwright.store import Store\n"
        "from modelwright.targets import parse_target\n"
        "def watch(event):\n"
        "    if event.stage == sys.argv[2] and event.message != 'looking in the store':\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "source = OnnxSource(sys.argv[1])\n"
        "recipe = resolve_recipe(source, parse_target('qnn-npu:soc=x-elite'))\n"
        "with Store(Path(sys.argv[3])) as store:\n"
        "    result = build(source, recipe, store=store, on_progress=watch)\n"
    )
    home = tmp_path / "home"
    words = [sys.executable, "-c", script, source.path, stage, str(home / "store")]
    done = subprocess.run(words, env={**os.environ, "MODELWRIGHT_HOME": str(home)}, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    _wait_for_the_end_of(home)
    with Store(home / "store") as store:
        assert store.verify().clean
        result = build(source, resolve_recipe(source, parse_target("qnn-npu:soc=x-elite")), store=store)
        order = ["import", "optimize", "quantize", "validate", "compile", "check"]
        assert ran(result) == order[order.index(stage) :]
        assert result.passed is None
