"""A CPU without VNNI, on any x86 machine: Debian's qemu-user runs onnxruntime's AVX2 kernels."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from modelwright.data import DataSource
from modelwright.stages.quantize import QuantizeParams, run_quantize
from modelwright.vocabulary import Data

DEMO = Path(__file__).parents[3] / "demo"
QEMU = shutil.which("qemu-x86_64")


def _quantized(model: Path, data: Path, folder: Path, reduced: bool | None) -> Path:
    folder.mkdir()
    params = QuantizeParams("w8a8", samples=4, reduce_range=reduced, pairs="needed")
    run_quantize(str(model), str(folder), params, DataSource(Data(str(data))))
    return folder / "model.onnx"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86 CPUs come without VNNI")
@pytest.mark.skipif(QEMU is None, reason="qemu-x86_64 is not installed (Debian: apt-get install qemu-user)")
def test_a_default_build_does_not_saturate_on_an_old_cpu_and_full_8_bit_weights_do(tmp_path):
    with np.load(DEMO / "fashion_test.npz") as file:
        images = file["image"][:4].astype(np.float32) / 255
    np.savez(tmp_path / "images.npz", image=images)
    model, data = DEMO / "fashion_cnn.onnx", tmp_path / "images.npz"
    made = [_quantized(model, data, tmp_path / str(reduced), reduced) for reduced in (None, False)]
    script = Path(__file__).with_name("old_cpu.py")
    done = subprocess.run(
        [QEMU, "-cpu", "Haswell", sys.executable, script, model, data, tmp_path, *made],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    default, full = json.loads(done.stdout)
    assert default["kernels"]["saturate"]
    assert default["passed"]
    assert default["note"] is None
    assert abs(default["as_executed"]["sqnr_db"] - default["as_written"]["sqnr_db"]) < 1
    assert full["as_executed"]["sqnr_db"] < full["as_written"]["sqnr_db"] - 3
    assert "8-bit products saturate" in full["note"]
