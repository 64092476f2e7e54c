"""A package beside wright adds an EP, a pass, a task, a metric, a meter and a command by entry points alone."""

import json
import site
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

CODE = '''
import click

from modelwright.evaluation.tasks import EvalTask, Metric
from modelwright.measure import Meter
from modelwright.stages.optimize import Pass, PassExtension
from modelwright.targets import Device, EpAdapter, ExecutionProvider


class AcmeAdapter(EpAdapter):
    provider = ExecutionProvider(
        key="acme", name="AcmeExecutionProvider", title="Acme Cruncher", vendor="Acme", delivery="plugin",
        package="onnxruntime-acme", platforms=("linux", "darwin", "win32"),
        devices=(Device("npu", "w8a8"),), chip_keys={"cores": ("2", "4")},
    )

    def chip_options(self, provider, chip):
        return {"acme_cores": chip.get("cores", "2")}


ADAPTER = AcmeAdapter()


def drop_twin_relu(model):
    """Relu of Relu is Relu."""
    twins = [node for node in model.graph if node.op_type == "Relu" and node.inputs[0].producer() is not None
             and node.inputs[0].producer().op_type == "Relu"]
    for node in twins:
        first = node.inputs[0].producer()
        node.replace_input_with(0, first.inputs[0])
        model.graph.remove(first, safe=True)
    return len(twins)


TWINS = PassExtension(Pass("drop_twin_relu", "rewrite", "cleanup", "Drop the second of two Relu"), drop_twin_relu)


class Sum(EvalTask):
    def __init__(self, context, settings):
        super().__init__(context, settings)
        self.metric = Metric("within_one")

    def score(self, row, outputs):
        (found,) = outputs[0].values()
        return float(abs(found.sum() - row["label"]) <= 1)


def closeness(outputs, row):
    (found,) = outputs.values()
    return 1.0 / (1.0 + abs(float(found.sum()) - float(row["label"])))


closeness.span = 1.0


def meters(pid):
    return [Meter("answer", "°", "acme", lambda now: 42.0)]


@click.command("greet")
def greet():
    click.echo("hello from acme")
'''
ENTRY_POINTS = """
[modelwright.eps]
acme = acme_wright:ADAPTER
[modelwright.passes]
drop_twin_relu = acme_wright:TWINS
[modelwright.tasks]
sum-within-one = acme_wright:Sum
[modelwright.metrics]
closeness = acme_wright:closeness
[modelwright.telemetry]
acme = acme_wright:meters
[modelwright.commands]
greet = acme_wright:greet
"""


@pytest.fixture(scope="module")
def acme(tmp_path_factory):
    """An environment with our packages and one more; gives what runs `wright …` in it."""
    folder = tmp_path_factory.mktemp("acme")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    own = next((folder / "venv").rglob("site-packages"))
    (own / "ours.pth").write_text("".join(f"import site; site.addsitedir({one!r})\n" for one in site.getsitepackages()))
    (own / "acme_wright.py").write_text(CODE)
    info = own / "acme_wright-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-wright\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (python,) = (
        path
        for path in (folder / "venv").rglob("python*")
        if path.stem == "python" and path.parent.name in ("bin", "Scripts")
    )

    def call(*words, code=0, script="from modelwright.cli import main; main()"):
        done = subprocess.run([python, "-c", script, *map(str, words)], capture_output=True, text=True, timeout=300)
        assert done.returncode == code, done.stderr
        return done

    return call


@pytest.fixture
def model(tmp_path):
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["a"], "first"), helper.make_node("Relu", ["a"], ["y"], "second")],
        "twins",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
    )
    path = tmp_path / "twins.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def data(tmp_path):
    x = np.random.default_rng(0).random((32, 4), dtype=np.float32)
    np.savez(tmp_path / "sums.npz", x=x, label=x.sum(axis=1))
    return tmp_path / "sums.npz"


def test_a_command_is_listed_and_runs(acme):
    assert "greet" in acme("--help").stdout
    assert acme("greet").stdout == "hello from acme\n"
    assert "greet" in acme("gret", code=2).stderr


def test_an_ep_is_a_target_with_chip_words_of_its_own(acme, model):
    missing = acme("perf", model, "--target", "acme-npu:cores=4", code=4).stderr
    assert "onnxruntime-acme is not installed" in missing
    assert "its chip settings are: cores" in acme("perf", model, "--target", "acme-npu:core=4", code=2).stderr


def test_a_pass_runs_in_the_child_and_its_package_is_part_of_the_key(acme, model, tmp_path):
    acme("optimize", model, "--passes", "drop_twin_relu", "-o", tmp_path / "out")
    assert [node.op_type for node in onnx.load(tmp_path / "out" / "model.onnx").graph.node] == ["Relu"]
    assert (
        "acme-wright"
        in acme(script="from modelwright.stages.optimize import OPTIMIZE; print(OPTIMIZE.libraries())").stdout
    )


def test_a_task_and_a_metric_score_samples(acme, model, data):
    words = ("eval", model, "--reference", model, "--data", data, "--max-drop", "0.2", "--json")
    assert json.loads(acme(*words, "--task", "sum-within-one").stdout)["values"]["reference"] == 1.0
    found = json.loads(acme(*words, "--metric", "closeness").stdout)
    assert found["metric"]["name"] == "closeness"
    assert found["values"]["reference"] > 0.99


def test_a_meter_is_sampled_beside_ours(acme, model):
    found = json.loads(acme("perf", model, "--duration", "1.5", "--monitor", "--json").stdout)
    series = {one["name"]: one for one in found["sessions"][0]["telemetry"]["series"]}
    assert series["answer"]["mean"] == 42.0
    assert "process_cpu" in series
