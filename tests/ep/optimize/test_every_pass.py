"""Every pass of the table fires on some graph, adds only what the table says, and keeps the numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from ep.optimize.optimize_graphs import FIRES, save
from modelwright.errors import InputError
from modelwright.stages.optimize import OptimizeParams, check_passes, find_pass, passes, run_optimize

NAMES = [item.name for item in passes()]
# What changes the numbers on purpose, and by how much at most on these graphs.
LOOSE = {
    "cast_chain_elimination": 1.0,
    "gelu_approximation": 1e-2,
    "qdq_final_cleanup": 0.05,
    "double_qdq_pairs_remover": 0.06,
    "weight_bias_quantization": 0.06,
    "qdq_selector_action": 0.06,
    "where_dummy_dq": 0.06,
    "dynamic_quantize_matmul_fusion": 0.05,
}


def run(path: str | Path, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, feeds)


def feeds_for(path: str) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(11)
    feeds = {}
    for value in onnx.load(path, load_external_data=False).graph.input:
        tensor = value.type.tensor_type
        shape = [dim.dim_value or 2 for dim in tensor.shape.dim]
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if tensor.elem_type == onnx.TensorProto.STRING:
            feeds[value.name] = np.array(["a", "b"], object)
        elif kind == np.float32:
            feeds[value.name] = generator.standard_normal(shape).astype(np.float32)
        elif tensor.elem_type == onnx.TensorProto.BOOL:
            feeds[value.name] = generator.integers(0, 2, shape).astype(bool)
        elif value.name == "mask":
            feeds[value.name] = np.ones(shape, kind)
        elif not shape:
            feeds[value.name] = np.array(3, kind)
        else:
            feeds[value.name] = generator.integers(0, 2, shape).astype(kind)
    return feeds


def test_every_pass_of_the_table_has_a_graph_to_show_it() -> None:
    assert sorted(FIRES) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_pass_alone_changes_the_graph_that_shows_it(name: str, tmp_path: Path) -> None:
    model = save(FIRES[name](), tmp_path / "in")
    (effect,) = check_passes(model, str(tmp_path), [name])
    assert effect.fired, effect
    assert effect.nodes_after - effect.nodes_before == sum(count for _, count in effect.delta)
    appeared = {op for op, count in effect.delta if count > 0}
    assert appeared <= set(find_pass(name).produces)
    assert [item.name for item in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("name", [item.name for item in passes() if not item.breaks_qdq])
def test_the_optimized_model_computes_the_same(name: str, tmp_path: Path) -> None:
    model = save(FIRES[name](), tmp_path / "in")
    out = tmp_path / "out"
    out.mkdir()
    outcome = run_optimize(model, str(out), OptimizeParams(passes=(name,)))
    assert {step.name: step.fired for step in outcome.steps}[name]
    assert name not in outcome.not_fired
    feeds = feeds_for(model)
    for expected, actual in zip(run(model, feeds), run(out / "model.onnx", feeds), strict=True):
        assert actual.shape == expected.shape
        if expected.dtype.kind == "f":
            tolerance = LOOSE.get(name, 1e-5)
            np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("name", [item.name for item in passes() if item.portable and not item.breaks_qdq])
def test_a_portable_pass_leaves_a_model_that_the_onnx_checker_accepts(name: str, tmp_path: Path) -> None:
    run_optimize(save(FIRES[name](), tmp_path / "in"), _folder(tmp_path), OptimizeParams(passes=(name,)))
    onnx.checker.check_model(str(tmp_path / "out" / "model.onnx"), full_check=True)


@pytest.mark.parametrize("name", [item.name for item in passes() if item.breaks_qdq])
def test_passes_that_take_qdq_pairs_apart_are_refused_on_quantized_models(name: str, tmp_path: Path) -> None:
    model = save(FIRES[name](), tmp_path / "in")
    with pytest.raises(InputError, match=name):
        run_optimize(model, _folder(tmp_path), OptimizeParams(passes=(name,)))


def _folder(tmp_path: Path) -> str:
    (tmp_path / "out").mkdir()
    return str(tmp_path / "out")
