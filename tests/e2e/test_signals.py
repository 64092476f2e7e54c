"""SIGTERM and SIGHUP end a command like ctrl-C: what was measured is kept, nothing is left. `python -m bench kills`
does the same forty times."""

import json
import signal
import time

import pytest
from bench.kills import Running, kill, victims


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return {victim.name: victim for victim in victims(tmp_path_factory.mktemp("models"))}


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("perf", signal.SIGINT),
        ("compare", signal.SIGTERM),
        ("eval", signal.SIGTERM),
        ("debug", signal.SIGHUP),
    ],
)
def test_what_was_measured_is_kept_and_nothing_is_left(prepared, tmp_path, name, number):
    fate = kill(prepared[name], tmp_path / "run", number, 0.3)
    assert fate.clean, fate
    # How much of the last second eval and debug lose depends on how busy the machine is; of a snapshot, nothing.
    assert fate.kept >= (fate.snapshot_before or fate.measured_before) > 0
    said = (tmp_path / "run/stdout").read_text()
    assert "interrupted" in said
    if name != "debug":
        found = json.loads((tmp_path / "run/result.json").read_text())
        assert found["status"] == "interrupted"
        assert found.get("verdict") is None


@pytest.mark.parametrize("delay_s", [0.1, 0.3, 0.6])
def test_a_signal_while_it_starts_leaves_no_result_without_a_sample(prepared, tmp_path, delay_s):
    """How far it is by then is the machine's affair: before Python listens, opening models, at its first samples."""
    fate = kill(prepared["eval"], tmp_path / "run", signal.SIGTERM, delay_s, measured=False)
    assert fate.good, fate
    assert fate.kept is None or fate.kept >= max(fate.snapshot_before, 1), fate


def test_the_same_signal_twice_at_once_is_one_request(prepared, tmp_path):
    """As `timeout` and a closing terminal send it."""
    (tmp_path / "run").mkdir()
    running = Running(prepared["perf"], tmp_path / "run")
    try:
        running.wait_for(1)
        running.process.send_signal(signal.SIGTERM)
        time.sleep(0.01)
        fate = running.end(signal.SIGTERM)
    finally:
        running.close()
    assert fate.good, fate
