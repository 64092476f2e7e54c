"""A trained model and real labelled images: what poor calibration costs, and that `--fix` gets it back."""

from __future__ import annotations

import importlib.util
import platform
import sys
from pathlib import Path

import numpy as np
import pytest

from ep.debug.left_out import nothing_can_be_left_out
from modelwright.data import DataSource
from modelwright.diagnosis import DebugOptions, debug
from modelwright.judge import parse_allowance
from modelwright.pipeline import Recipe
from modelwright.repairs import FixOptions, fix
from modelwright.stages.optimize import PRESETS, OptimizeParams, resolve_passes, run_optimize
from modelwright.stages.quantize import QuantizeParams, run_quantize
from modelwright.store import Store
from modelwright.targets import parse_target
from modelwright.vocabulary import Data
from modelwright.worker import run

DEMO = Path(__file__).parents[3] / "demo"
MODEL, DATA = DEMO / "fashion_cnn.onnx", DEMO / "fashion_test.npz"
PORTABLE = resolve_passes(PRESETS["portable"])
HAS_QNN = importlib.util.find_spec("onnxruntime_qnn") is not None and platform.machine() == "x86_64"
needs_qnn = pytest.mark.skipif(not HAS_QNN or sys.platform != "linux", reason="the QNN simulator is not installed")


def calibration(folder: Path, brightness: float, count: int) -> str:
    with np.load(DATA) as data:
        images = data["image"][:count].astype(np.float32) / 255 * brightness
    np.savez(folder / "calibration.npz", image=images)
    return str(folder / "calibration.npz")


def repaired(folder: Path, quantize: QuantizeParams, data: Data, options: FixOptions):
    made = Recipe(
        policy_version=1,
        target="cpu",
        precision="w8a8",
        export=None,
        optimize=OptimizeParams(PORTABLE),
        quantize=quantize,
        data=data,
        compile=None,
    )
    with Store(folder / "store") as store:
        result = fix(MODEL, made, options, store=store)
        nothing_can_be_left_out(result, MODEL, made, options, store)
        return result


@pytest.mark.proof
def test_poor_calibration_is_repaired_to_within_a_point_of_float(tmp_path):
    """Calibrated on two dark images, so that everything brighter is clipped."""
    options = FixOptions(data=Data(str(DATA), samples=600, scale=1 / 255), target_drop=parse_allowance("1pt"))
    result = repaired(tmp_path, QuantizeParams("w8a8", samples=2), Data(calibration(tmp_path, 0.3, 2)), options)
    wanted, before, after = result.rows
    assert result.status == "met"
    assert wanted.check.metric > 0.88
    assert before.check.metric < wanted.check.metric - 0.05
    assert after.check.metric >= wanted.check.metric - 0.01
    assert after.file_bytes < 0.6 * wanted.file_bytes
    assert len(result.raised) <= 3


@needs_qnn
def test_every_tensor_of_the_trained_model_is_compared_with_the_simulator(tmp_path):
    fixed = OptimizeParams(PORTABLE, fix_dims=(("batch", 1),))
    for name in ("base", "quant"):
        (tmp_path / name).mkdir()
    run(run_optimize.call(str(MODEL), str(tmp_path / "base"), fixed), timeout=120).unwrap()
    data = DataSource(Data(calibration(tmp_path, 1.0, 8)))
    call = run_quantize.call(
        str(tmp_path / "base" / "model.onnx"), str(tmp_path / "quant"), QuantizeParams("w8a16", samples=8), data
    )
    run(call, timeout=120).unwrap()
    options = DebugOptions(data=Data(str(DATA), samples=1, scale=1 / 255), target=parse_target("qnn-npu"))
    report = debug(tmp_path / "quant", options=options)
    assert report.status == "ok"
    assert report.runtimes.simulated
    assert len(report.activations) >= 10
    assert report.summary.cumulative.min > 40
    assert {row.op_type for row in report.originators} <= {"Conv", "Gemm", "GlobalAveragePool", "Flatten", "(input)"}


@pytest.mark.proof
def test_the_demos_int8_build_is_repaired(tmp_path, monkeypatch):
    """Every range is too small here, so that a repair in one place makes another clip more."""
    monkeypatch.chdir(DEMO.parent)
    naive = QuantizeParams("w8a8", per_channel=False, op_types=("all",))
    options = FixOptions(data=Data(str(DATA), samples=1000, scale=1 / 255), target_drop=parse_allowance("2pt"))
    result = repaired(tmp_path, naive, Data(str(DATA), scale=0.4 / 255), options)
    assert result.status == "met"
    assert len(result.raised) <= 4


@pytest.mark.proof
def test_a_target_that_only_the_float_model_meets_is_said_to_be_out_of_reach(tmp_path):
    """The last candidate has nothing left to quantize: that it is refused ends the search, not the command."""
    options = FixOptions(data=Data(str(DATA), samples=8, scale=1 / 255), target_sqnr=200.0)
    result = repaired(tmp_path, QuantizeParams("w8a8", samples=2), Data(calibration(tmp_path, 0.3, 2)), options)
    assert result.status == "not_met"
    assert not result.raised
