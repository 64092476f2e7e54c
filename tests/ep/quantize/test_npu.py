"""The QNN compiler takes what the stage makes, whole. Timing on its simulator means nothing and is not looked at."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnxruntime as ort
import pytest

from ep.quantize.graphs import conv_net, image, saved, transformer
from modelwright.data import DataSource
from modelwright.stages.quantize import QuantizeParams, run_quantize

pytest.importorskip("onnxruntime_qnn")

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
