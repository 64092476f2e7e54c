"""16 bits for the products of an NPU that make most of the noise, found by measuring it at the outputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import rich.console

import modelwright as mw
from ep.quantize.graphs import BLOCKS, LOUD, WIDTH, residual, saved
from ep.quantize.test_npu import ask
from modelwright.data import DataSource
from modelwright.report.build import render_builds
from modelwright.stages.quantize import QuantizeParams, TensorOverride, run_quantize
from modelwright.stages.quantize._check import narrow_products
from modelwright.store import Store
from modelwright.vocabulary import Data

pytest.importorskip("onnxruntime_qnn")
PARAMS = QuantizeParams("w8a8", samples=16, pairs="all", scope="qnn", wide_where_noisy=True)


@pytest.fixture
def data(tmp_path):
    rows = np.random.default_rng(0).standard_normal((16, 8, WIDTH)).astype(np.float32)
    np.savez(tmp_path / "rows.npz", x=rows)
    return DataSource(Data(str(tmp_path / "rows.npz")))


def made(tmp_path, name, params, data, loud=True):
    (tmp_path / name).mkdir()
    outcome = run_quantize(saved(residual(loud), tmp_path), str(tmp_path / name), params, data)
    return outcome, tmp_path / name / "model.onnx"


def answer(path, sample):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, sample)[0]


def lost(one, other):
    return float(np.square(one - other).sum() / np.square(one).sum())


def test_the_product_that_makes_the_noise_computes_in_16_bits_and_the_target_computes_it(tmp_path, data):
    outcome, path = made(tmp_path, "wide", PARAMS, data)
    assert outcome.widened.tensors == (f"p{LOUD}",)
    assert outcome.widened.of == BLOCKS
    assert outcome.widened.decibels > 10
    assert any("16 bits for 1 of 10 products" in words for words in outcome.warnings)
    assert outcome.measured.startswith("mixed(w8, a")
    found = narrow_products(onnx.load(path), 8)
    assert (found.count, found.of) == (BLOCKS - 1, BLOCKS)
    sample = {"x": np.random.default_rng(7).standard_normal((1, 8, WIDTH)).astype(np.float32)}
    np.savez(tmp_path / "in.npz", **sample)
    assert set(ask(path, tmp_path / "in.npz", tmp_path / "out.npy")) <= {"QuantizeLinear", "DequantizeLinear"}
    float_answer = answer(saved(residual(True), tmp_path), sample)
    assert lost(float_answer, np.load(tmp_path / "out.npy")) < 0.005
    _, narrow = made(tmp_path, "narrow", replace(PARAMS, wide_where_noisy=False), data)
    assert lost(float_answer, answer(str(narrow), sample)) > 0.05


def test_a_model_that_is_fine_in_8_bits_is_the_same_file_with_and_without_the_search(tmp_path, data):
    files = []
    for wide in (True, False):
        outcome, path = made(tmp_path, str(wide), replace(PARAMS, wide_where_noisy=wide), data, loud=False)
        assert outcome.widened is None
        files.append(path.read_bytes())
    assert files[0] == files[1]


def test_made_up_samples_and_the_effort_fast_decide_about_no_width(tmp_path, data):
    assert made(tmp_path, "random", PARAMS, DataSource())[0].widened is None
    assert made(tmp_path, "fast", replace(PARAMS, effort="fast"), data)[0].widened is None


def test_a_width_that_was_asked_for_stays(tmp_path, data):
    params = replace(PARAMS, overrides=(TensorOverride(f"p{LOUD}", "uint8"),))
    outcome, path = made(tmp_path, "asked", params, data)
    assert outcome.widened is None
    found = narrow_products(onnx.load(path), 8)
    assert found.count == found.of


def test_the_effort_best_starts_from_the_same_widths(tmp_path, data):
    outcome, path = made(tmp_path, "best", replace(PARAMS, effort="best"), data)
    assert outcome.widened.tensors == (f"p{LOUD}",)
    found = narrow_products(onnx.load(path), 8)
    assert found.count == BLOCKS - 1


def test_a_build_for_the_npu_does_so_by_itself_and_is_computed_there(tmp_path, data):
    onnx.save(residual(True), tmp_path / "model.onnx")
    with Store(tmp_path / "store") as store:
        found = mw.build(
            tmp_path / "model.onnx", "qnn-npu", precision="w8a8", data=str(tmp_path / "rows.npz"), store=store
        )
    component = found[0].components[0]
    assert (component.validation.passed, component.check.passed) == (True, True)
    outcome = next(stage.outcome for stage in component.stages if stage.stage == "quantize")
    assert outcome.widened.tensors == (f"p{LOUD}",)
    assert found[0].recipe.quantize.wide_where_noisy
    console = rich.console.Console(record=True, width=80)
    render_builds(found, console)
    assert "16 bits for 1 of 10 products" in " ".join(console.export_text().split())
