"""perf on real sessions: complete, interrupted, crashed and simulated."""

import importlib.metadata
import importlib.util
import os
import platform
import signal
import sys
import threading
import time

import psutil
import pytest
from onnx import helper

from modelwright._json import dumps
from modelwright.errors import ExecutionError
from modelwright.measure import (
    InputChoice,
    MeasurementFailed,
    MeasurementInterrupted,
    PerfOptions,
    perf,
    read_samples,
)
from support import models

needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_qnn") is None or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the QNN simulator exists on x86 Linux",
)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "home"))


@pytest.fixture
def model(tmp_path):
    return models.save(models.mlp(), tmp_path)


class Attack:
    """A watch that does something to the measured process once it has samples."""

    def __init__(self, action):
        self.action = action

    def start(self, pid, samples):
        def wait():
            while len(read_samples(samples)[1]) < 100:
                time.sleep(0.01)
            self.action(pid)

        threading.Thread(target=wait, daemon=True).start()

    def stop(self):
        return None


def test_runs_are_counted_where_the_first_axis_is_no_batch(tmp_path):
    sides = [models.value(name, shape=["T", 1, 4]) for name in "xy"]
    path = models.save(models.model([helper.make_node("Relu", ["x"], ["y"])], sides[:1], sides[1:]), tmp_path, "t.onnx")
    found = perf(path, "cpu", PerfOptions(iterations=5, warmup=0, inputs=InputChoice(dims={"T": 9}))).throughput
    assert (found.items_per_s, found.batch, found.batch_reason) == (None, None, "the first axis of x is T")
    assert found.runs_per_s > 0


def test_the_answer_says_what_was_asked_bound_and_measured(model):
    result = perf(model, "cpu", PerfOptions(iterations=200, sessions=2, threads=1, inputs=InputChoice(batch=3)))
    assert result.status == "complete"
    assert [len(session.samples_ns) for session in result.sessions] == [200, 200]
    assert result.latency.count == 400
    assert result.throughput.batch == 3
    assert result.throughput.items_per_s == pytest.approx(3 * 1000 / result.latency.mean_ms)
    assert result.requested.ep == result.bound.ep == "CPUExecutionProvider"
    assert (result.bound.threads, result.bound.placed_share, result.precision) == (1, 1.0, "fp32")
    assert result.peak_rss_bytes > 20_000_000
    assert result.load.open_s >= result.load.create_s > 0
    assert result.environment.host.cpu.usable >= 1
    assert dumps(result)


def test_sessions_are_separate_processes(model):
    pids = []

    class Note:
        def start(self, pid, samples):
            pids.append(pid)

        def stop(self):
            return None

    perf(model, "cpu", PerfOptions(iterations=5, warmup=0, sessions=2), watch=Note())
    assert len(set(pids)) == 2
    assert os.getpid() not in pids


def test_a_crash_while_measuring_is_typed_and_keeps_the_samples(model):
    kill = Attack(lambda pid: os.kill(pid, signal.SIGSEGV))
    with pytest.raises(MeasurementFailed) as caught:
        perf(model, "cpu", PerfOptions(duration_s=30), watch=kill)
    partial = caught.value.partial
    assert "SIGSEGV" in caught.value.cause
    assert partial.status == "failed"
    assert partial.failure.kind == "crash"
    assert partial.latency.count >= 100
    assert partial.bound.ep == "CPUExecutionProvider"


def test_a_run_that_never_ends_hits_the_limit_and_keeps_the_samples(model):
    stop = Attack(lambda pid: psutil.Process(pid).suspend())
    with pytest.raises(MeasurementFailed) as caught:
        perf(model, "cpu", PerfOptions(iterations=10**9, timeout_s=3), watch=stop)
    assert caught.value.partial.failure.kind == "timeout"
    assert caught.value.partial.latency.count >= 100


def test_ctrl_c_keeps_the_samples(model):
    interrupt = Attack(lambda pid: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(MeasurementInterrupted) as caught:
        perf(model, "cpu", PerfOptions(duration_s=30), watch=interrupt)
    assert caught.value.partial.status == "interrupted"
    assert caught.value.partial.latency.count >= 100


def test_ctrl_c_in_the_trace_keeps_the_latency(model):
    def stop(progress):
        if progress.message == "tracing":
            raise KeyboardInterrupt

    with pytest.raises(MeasurementInterrupted) as caught:
        perf(model, "cpu", PerfOptions(iterations=20, warmup=1, op_trace="basic"), on_progress=stop)
    assert caught.value.partial.status == "interrupted"
    assert caught.value.partial.latency.count == 20


def test_an_ep_that_is_not_there_is_an_error_not_another_ep(model):
    with pytest.raises(ExecutionError, match="cannot run here"):
        perf(model, "vitisai-npu", PerfOptions(iterations=1))


@needs_simulator
def test_a_simulator_has_samples_but_no_latency(tmp_path):
    model = models.save(models.conv_net(), tmp_path)
    result = perf(model, "qnn-npu", PerfOptions(iterations=2, warmup=1))
    assert result.timing_valid is False
    assert result.latency is None
    assert result.throughput is None
    assert "simulated" in result.latency_reason
    assert result.load.first_run_ms is None
    assert "simulated" in result.load.first_run_reason
    assert result.bound.ep_version == importlib.metadata.version("onnxruntime-qnn")
    assert result.sessions[0].p50_ms is None
    assert len(result.sessions[0].samples_ns) == 2
    assert any("timing_valid is false" in warning for warning in result.warnings)
