"""`--as-python` prints a program that does what the command does."""

import json
import os
import subprocess
import sys

import pytest

from support.models import mlp, save

SAVED = "result.json"
VOLATILE = {"seconds", "cpu_seconds", "record", "record_id", "seal", "command", "peak_rss_bytes"}

COMMANDS = [
    ("inspect", "model.onnx"),
    ("analyze", "model.onnx", "--no-suggest"),
    ("build", "model.onnx", "--precision", "w8a8", "--data", "data.npz", "-o", "out", "--memory", "8GB"),
    ("quantize", "model.onnx", "-p", "w8a8", "--per-channel", "--seed", "3"),
    ("eval", "model.onnx", "--reference", "model.onnx", "--data", "random", "--samples", "3", "--outputs"),
    ("debug", "model.onnx", "--reference", "model.onnx", "--samples", "2"),
]


def steady(value):
    """Without what differs from run to run."""
    if isinstance(value, dict):
        return {key: steady(item) for key, item in value.items() if key not in VOLATILE and key[-2:] != "_s"}
    return [steady(item) for item in value] if isinstance(value, list) else value


@pytest.fixture
def folder(tmp_path):
    import numpy as np

    save(mlp(), tmp_path)
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(0).normal(size=(8, 4)).astype("float32"))
    return tmp_path


def run_python(wright, folder, text):
    env = {**os.environ, "MODELWRIGHT_HOME": str(folder / "home")}
    return subprocess.run(
        [sys.executable, "-c", text], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_the_printed_program_gives_the_same_result(wright, folder, words):
    typed = wright(*words, "--save", SAVED)
    assert typed.code == 0, typed.err
    wanted = json.loads((folder / SAVED).read_text())
    (folder / SAVED).unlink()
    printed = wright(*words, "--save", SAVED, "--as-python")
    assert printed.out.startswith("import modelwright as mw\n")
    assert not (folder / SAVED).exists()
    done = run_python(wright, folder, printed.out)
    assert done.returncode == 0, done.stderr
    assert steady(json.loads((folder / SAVED).read_text())) == steady(wanted)


def test_what_is_as_by_default_is_not_said(wright):
    assert wright("perf", "model.onnx", "--as-python").out.splitlines()[-1] == "result = mw.perf('model.onnx')"
    assert "mw.limited(timeout=60.0)" in wright("perf", "model.onnx", "--timeout", "1m", "--as-python").out
