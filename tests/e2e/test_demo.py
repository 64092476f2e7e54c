"""What `make demo` shows is true from the first command to the last."""

import importlib.util
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "demo"
HAS_QNN = importlib.util.find_spec("onnxruntime_qnn") is not None and platform.machine() == "x86_64"


@pytest.mark.skipif(not HAS_QNN or sys.platform != "linux", reason="the QNN compiler is not installed")
def test_the_demo_builds_judges_finds_the_loss_and_repairs_it(tmp_path):
    shutil.copytree(DEMO, tmp_path / "demo")
    words = [sys.executable, str(tmp_path / "demo/run.py")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    judged = done.stdout.split("Supported? A claim climbs")[0].split("--task image-classification")
    broken, repaired = (part.split("$ wright")[0] for part in judged[-2:])
    assert "fail" in broken
    assert "pass" in repaired
    assert "repaired: SQNR" in done.stdout
    assert "everything came from the store" in done.stdout
    climbed, forged = done.stdout.split("Supported? A claim climbs")[1].split("does a review believe it?")
    assert "L3 of L3" in climbed
    assert "reject:" in forged
    assert "L3 cpu fp32" in forged
    assert (tmp_path / "demo-out/debug.html").is_file()
    assert (tmp_path / "demo-out/trace.html").is_file()
    assert done.stdout.rstrip().endswith("demo-out/site/index.html")
    assert (tmp_path / "demo-out/site/index.html").is_file()
