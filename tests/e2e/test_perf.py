"""`wright perf` as a user types it."""

import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support import models

needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_qnn") is None or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the QNN simulator exists on x86 Linux",
)


@pytest.fixture(autouse=True)
def model(tmp_path):
    return models.save(models.mlp(), tmp_path)


def test_people_read_latency_throughput_load_memory_and_where_it_ran(wright):
    answer = wright("perf", "model.onnx", "--iterations", 200, "--threads", 1)
    assert answer.code == 0, answer.err
    for word in ("p50", "p99", "items/s (batch 1)", "Cold load", "peak", "asked cpu, bound CPUExecutionProvider"):
        assert word in answer.out


def test_onnxruntime_leaves_no_identity_in_the_users_home(wright, tmp_path):
    """Its telemetry writes a device id and a database of events below the user's cache as soon as it is imported."""
    home = tmp_path / "home"
    home.mkdir()
    places = {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "MODELWRIGHT_HOME": str(tmp_path / "wright")}
    assert wright("perf", "model.onnx", "--iterations", 1, "--warmup", 0, env={**places, "CI": ""}).code == 0
    assert [path for path in home.rglob("*") if "onnxruntime" in path.name or path.name == "deviceid"] == []


def test_the_json_answer_and_the_data_file_are_the_same_document(wright, tmp_path):
    answer = wright("perf", "model.onnx", "--iterations", 20, "--warmup", 3, "--json", "--save", "result.json")
    kept = json.loads((tmp_path / "result.json").read_text())
    assert kept.pop("seal")  # tells a file that wright wrote from one that it did not
    assert kept.pop("record")["environment"]  # where and how it was found
    assert answer.json == kept
    assert kept["schema_version"] == 1
    assert len(kept["sessions"][0]["samples_ns"]) == 20
    assert len(kept["sessions"][0]["warmup_ns"]) == 3
    assert kept["requested"]["target"] == "cpu"
    assert kept["bound"]["ep"] == "CPUExecutionProvider"
    assert kept["environment"]["governor"].keys() == {"value", "unit", "reason"}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--duration", "nan"], 2),
        (["--duration", "inf"], 2),
        (["--duration", "-1"], 2),
        (["--iterations", "5", "--duration", "1"], 2),
        (["--warmup", "some"], 2),
        (["--dim", "batch"], 2),
        (["--dim", "batch=x"], 2),
        (["--dim", "depth=3"], 2),
        (["--target", "cpuu"], 2),
        (["--save", "absent/result.json"], 2),
        (["--data", "absent.npz"], 3),
        (["--target", "vitisai-npu", "--iterations", "1"], 4),
    ],
    ids=str,
)
def test_bad_requests_have_their_exit_code_and_a_next_step(wright, words, code):
    answer = wright("perf", "model.onnx", *words)
    assert answer.code == code
    assert "next: " in answer.err
    assert answer.out == ""


def test_npz_with_wrong_keys_names_the_right_ones(wright, tmp_path):
    np.savez(tmp_path / "wrong.npz", z=np.zeros((1, 4), np.float32))
    answer = wright("perf", "model.onnx", "--data", "wrong.npz")
    assert answer.code == 3
    assert "x is missing" in answer.err


def test_throughput_counts_the_batch_really_used(wright, tmp_path):
    np.savez(tmp_path / "x.npz", x=np.zeros((5, 4), np.float32))
    found = wright("perf", "model.onnx", "--data", "x.npz", "--batch", 5, "--iterations", 20, "--json").json
    assert found["throughput"]["batch"] == 5
    assert found["throughput"]["items_per_s"] == pytest.approx(5 * found["throughput"]["runs_per_s"])


def _start(tmp_path, *words):
    environment = {**os.environ, "MODELWRIGHT_HOME": str(tmp_path / "home")}
    script = Path(sys.executable).with_name("wright")
    return subprocess.Popen(
        [script, *words], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_second_measurement_says_so_or_waits(wright, tmp_path):
    first = _start(tmp_path, "perf", "model.onnx", "--duration", "600")
    try:
        assert "session 1" in first.stderr.readline()
        refused = wright("perf", "model.onnx", "--iterations", 1, "--no-wait")
        assert refused.code == 4
        assert f"process {first.pid}" in refused.err
        waiting = _start(tmp_path, "perf", "model.onnx", "--iterations", "1")
        assert "waiting: wright perf" in waiting.stderr.readline()
    finally:
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=120)
    _, err = waiting.communicate(timeout=120)
    assert waiting.returncode == 0, err


@needs_simulator
def test_a_simulator_is_announced_loudly_and_has_no_latency(wright, tmp_path):
    models.save(models.conv_net(), tmp_path, "conv.onnx")
    words = ("perf", "conv.onnx", "--target", "qnn-npu", "--iterations", 1, "--warmup", 1)
    answer = wright(*words)
    assert answer.code == 0, answer.err
    assert "NO LATENCY" in answer.out
    assert "p50" not in answer.out
    found = wright(*words, "--json").json
    assert (found["timing_valid"], found["latency"], found["throughput"]) == (False, None, None)


def test_a_trace_is_taken_beside_the_latency(wright, tmp_path):
    answer = wright("perf", "model.onnx", "--iterations", 20, "--op-trace", "--trace-html", "trace.html")
    assert answer.code == 0, answer.err
    assert "p50" in answer.out
    assert "MatMul" in answer.out
    assert "<html" in (tmp_path / "trace.html").read_text()


def test_a_watched_run_reports_what_was_seen_and_null_with_a_reason(wright):
    found = wright("perf", "model.onnx", "--duration", 2, "--monitor", "--json").json
    series = {one["name"]: one for one in found["sessions"][0]["telemetry"]["series"]}
    assert series["process_memory"]["mean"] > 0
    assert all(one["mean"] is not None or one["reason"] for one in series.values())
