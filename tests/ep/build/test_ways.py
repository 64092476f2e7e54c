"""The gate says what a quantized artifact is worth as it is written and as this CPU executes it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from modelwright.models import OnnxSource
from modelwright.pipeline import RecipeChoices, build, resolve_recipe
from modelwright.store import Store
from modelwright.targets import parse_target, products_saturate
from support.models import save


@pytest.fixture
def source(tmp_path):
    """Weights of one size and one sign: every pair of products is as large as it can be."""
    weights = np.full((64, 8), 0.5, np.float32) * np.linspace(0.6, 1.0, 8, dtype=np.float32)
    graph = helper.make_graph(
        [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("MatMul", ["s", "w"], ["y"], name="matmul")],
        "pairs",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4, 64])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [4, 8])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return OnnxSource(str(save(model, tmp_path)))


@pytest.fixture
def gate(source, tmp_path):
    def ask(target, precision="w8a8", **quantize):
        recipe = resolve_recipe(
            source,
            parse_target(target),
            RecipeChoices(precision=precision),
            {"quantize": quantize} if quantize else None,
        )
        with Store(tmp_path / "store") as store:
            return build(source, recipe, store=store).components[0].validation

    return ask


@pytest.mark.parametrize("precision", ["w8a8", "dynamic"])
def test_a_default_build_for_the_cpu_is_executed_as_it_is_written(gate, precision):
    answer = gate("cpu", precision)
    assert (answer.passed, answer.decided_by, answer.note) == (None, "as executed", None)
    assert answer.as_executed.sqnr_db > 25
    assert answer.as_executed.sqnr_db == pytest.approx(answer.as_written.sqnr_db, abs=1.0)
    assert answer.kernels.saturate == products_saturate()


@pytest.mark.parametrize("precision", ["w8a8", "dynamic"])
def test_what_saturation_costs_is_measured_and_named(gate, precision):
    """On a CPU that does not saturate there is nothing to name; under qemu every x86 machine is one that does."""
    answer = gate("cpu", precision, reduce_range=False)
    assert answer.as_written.sqnr_db > 25
    if products_saturate():
        assert answer.as_executed.sqnr_db < answer.as_written.sqnr_db - 6
        assert "8-bit products saturate on this CPU" in answer.note
    else:
        assert answer.note is None


@pytest.mark.parametrize("target", ["cpu:isa=vnni", "qnn-npu"])
def test_an_artifact_for_other_machines_is_not_judged_by_this_ones_saturation(gate, target):
    answer = gate(target)
    assert answer.passed is None
    assert answer.worst_cosine == (answer.as_written if products_saturate() else answer.as_executed).cosine
    assert answer.decided_by == ("as written" if products_saturate() else "as executed")


def test_nothing_quantized_means_one_way(gate):
    answer = gate("cpu", "fp32")
    assert (answer.decided_by, answer.kernels) == ("as executed", None)
    assert answer.as_written.reason == "nothing is quantized"


def test_a_model_that_came_quantized_is_not_blamed_for_its_kernels(source, tmp_path):
    recipe = resolve_recipe(
        source, parse_target("cpu"), RecipeChoices(precision="w8a8"), {"quantize": {"reduce_range": False}}
    )
    with Store(tmp_path / "store") as store:
        built = build(source, recipe, store=store).components[0].final
        came = OnnxSource(str(built.artifact.path_of(built.files[0].name)))
        answer = build(came, resolve_recipe(came, parse_target("cpu")), store=store).components[0].validation
    assert (answer.passed, answer.decided_by, answer.worst_cosine) == (True, "as written", 1.0)
    assert (answer.precision, answer.bound) == ("w8a8", 0.9)
