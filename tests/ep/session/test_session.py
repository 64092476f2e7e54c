"""A session is bound to the device that was asked for, says so, and leaves nothing behind."""

import importlib.metadata
import importlib.util
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ep.session import tasks
from ep.session.nets import conv_relu, shared_zero_point
from modelwright.errors import ExecutionError, InputError
from modelwright.targets import SessionSpec, installed_plugins
from modelwright.worker import run

LIMIT_S = 120
needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_qnn") is None or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the QNN simulator exists on x86 Linux",
)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "home"))


@pytest.fixture
def model(tmp_path):
    return str(conv_relu(tmp_path))


def answer(call):
    return run(call, timeout=LIMIT_S).unwrap()


def test_cpu_is_cpu_and_its_timing_counts(model):
    facts = answer(tasks.facts_of.call(model, "cpu"))
    assert facts.providers == ("CPUExecutionProvider",)
    assert facts.hardware == "cpu"
    assert facts.timing_valid


@needs_simulator
def test_cpu_is_bound_while_another_ep_is_registered(model):
    providers, used = answer(tasks.cpu_beside.call(model, "qnn-npu"))
    assert providers == ("CPUExecutionProvider",)
    assert used == ["CPUExecutionProvider"]


@needs_simulator
def test_qnn_on_x86_is_a_simulator_without_valid_timing(model):
    facts = answer(tasks.facts_of.call(model, "qnn-npu"))
    assert facts.ep_version == importlib.metadata.version("onnxruntime-qnn")
    assert facts.engine == f"onnxruntime {facts.onnxruntime}, QNNExecutionProvider {facts.ep_version}"
    assert facts.providers[0] == facts.ep == "QNNExecutionProvider"
    assert facts.simulated
    assert not facts.timing_valid


@needs_simulator
def test_the_simulator_computes_what_the_cpu_computes(model):
    found, expected = (answer(tasks.run_ones.call(model, target)) for target in ("qnn-npu", "cpu"))
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-2)


@needs_simulator
def test_a_simulator_and_all_its_threads_have_one_cpu_while_it_is_open(model):
    found, restored = answer(tasks.cpus_of_a_simulator.call(model))
    assert len(found) > 1
    assert len(set.union(*found)) == 1
    assert restored


@needs_simulator
def test_chip_options_and_backend_reach_the_created_session(model):
    keys = [f"ep.qnnexecutionprovider.{key}" for key in ("htp_arch", "soc_model", "backend_path")]
    arch, soc, backend = answer(tasks.config_entries.call(model, "qnn-npu:soc=x-elite", keys))
    assert (arch, soc) == ("73", "60")
    assert "QnnHtp" in backend


@needs_simulator
def test_the_parent_may_say_which_plugin_to_use(model):
    plugin = next(found for found in installed_plugins() if found.label == "onnxruntime-qnn")
    facts = answer(tasks.facts_of.call(model, "qnn-npu", SessionSpec(plugin=plugin)))
    assert facts.nodes_per_ep == {"QNNExecutionProvider": 6}


@needs_simulator
def test_the_users_provider_option_beats_the_default(model):
    spec = SessionSpec(provider_options={"htp_graph_finalization_optimization_mode": "2"})
    facts = answer(tasks.facts_of.call(model, "qnn-npu", spec))
    assert dict(facts.options)["htp_graph_finalization_optimization_mode"] == "2"


@needs_simulator
def test_an_ep_that_cannot_start_raises_and_nothing_falls_back(model):
    spec = SessionSpec(provider_options={"backend_path": "/nowhere/libQnnHtp.so"})
    result = run(tasks.facts_of.call(model, "qnn-npu", spec), timeout=LIMIT_S)
    with pytest.raises(ExecutionError, match="qnn-npu takes no node"):
        result.unwrap()
    assert "Falling back" not in result.log.read_text(errors="replace")


@pytest.mark.parametrize(
    ("target", "cause", "fix"),
    [
        ("webgpu-gpu", "onnxruntime-ep-webgpu is not installed", "pip install onnxruntime-ep-webgpu"),
        ("cuda-gpu", "onnxruntime-gpu is not installed", "wright runtime create cuda onnxruntime-gpu"),
        ("vitisai-npu", "Windows only", "needs a worker that has AMD Ryzen AI"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="what is missing depends on the platform")
def test_a_missing_ep_says_what_to_do_and_is_never_replaced(model, target, cause, fix):
    with pytest.raises(ExecutionError) as caught:
        answer(tasks.facts_of.call(model, target))
    assert cause in caught.value.cause
    assert fix in caught.value.fix


@needs_simulator
def test_another_device_of_the_same_ep_is_refused(model):
    with pytest.raises(ExecutionError) as caught:
        answer(tasks.facts_of.call(model, "qnn-gpu"))
    assert "Qualcomm GPU" in caught.value.fix


@pytest.mark.skipif(sys.platform != "linux", reason="needs CPU affinity")
def test_threads_are_what_the_process_may_use(model):
    assert answer(tasks.threads_on_one_cpu.call(model)) == 1


def test_asked_threads_are_given_and_recorded(model):
    assert answer(tasks.facts_of.call(model, "cpu", SessionSpec(threads=3))).threads == 3


@pytest.mark.parametrize("target", ["cpu", pytest.param("qnn-npu", marks=needs_simulator)])
def test_close_frees_the_native_session_while_an_error_still_holds_the_frames(model, target):
    failed, alive = answer(tasks.native_is_freed_after_failed_run.call(model, target))
    assert failed
    assert not alive


def test_a_bad_input_spoils_nothing(model):
    assert np.isfinite(answer(tasks.good_run_after_bad_one.call(model))).all()


def test_the_profile_is_complete_when_the_session_is_closed(model, tmp_path):
    profile = answer(tasks.profiled.call(model, str(tmp_path / "trace")))
    assert profile.startswith(str(tmp_path / "trace"))
    assert Path(profile).read_text().rstrip().endswith("]")


@needs_simulator
def test_a_process_can_open_sessions_on_several_targets_in_turn(model):
    found = answer(tasks.open_in_turn.call(model, ["qnn-npu", "cpu", "qnn-npu:htp_arch=73"]))
    assert found == ["QNNExecutionProvider", "CPUExecutionProvider", "QNNExecutionProvider"]


@needs_simulator
def test_a_process_that_closed_its_session_exits_cleanly(model):
    program = (
        "import sys; from modelwright.targets import open_session, parse_target\n"
        "with open_session(sys.argv[1], parse_target('qnn-npu')) as session: print(session.facts)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, model], capture_output=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr


def test_a_damaged_model_is_bad_input(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08\x08garbage")
    with pytest.raises(InputError):
        answer(tasks.facts_of.call(str(path), "cpu"))


def test_a_read_only_folder_is_enough(model, tmp_path):
    before = sorted(item.name for item in tmp_path.iterdir())
    tmp_path.chmod(0o555)
    try:
        answer(tasks.run_ones.call(model, "cpu"))
    finally:
        tmp_path.chmod(0o755)
    assert sorted(item.name for item in tmp_path.iterdir() if item.name != "home") == [
        name for name in before if name != "home"
    ]


@pytest.mark.parametrize(("config", "arena"), [({}, True), ({"enable_cpu_mem_arena": "0"}, False)])
def test_switches_that_are_no_config_entries_reach_the_created_session_too(model, config, arena):
    assert answer(tasks.arena_of.call(model, config)) is arena


def test_exact_kernels_open_a_model_whose_weights_share_a_zero_point(tmp_path):
    """onnxruntime by itself does not: it adds the same uint8 constant twice."""
    exact, written = answer(tasks.exact_and_written.call(str(shared_zero_point(tmp_path))))
    np.testing.assert_allclose(exact, written, atol=0.02)
