"""Two measurements never run at once."""

import subprocess
import sys
import threading

import pytest

from modelwright.errors import ExecutionError
from modelwright.measure import measurement_lock

HOLD = """
import sys
from modelwright.measure import measurement_lock
with measurement_lock("the other one", wait=True, note=print):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_without_waiting_it_says_who_measures(holder):
    with (
        pytest.raises(ExecutionError) as caught,
        measurement_lock("mine", wait=False, note=print),
    ):
        pytest.fail("two at once")
    assert f"the other one (process {holder.pid}" in caught.value.cause
    assert caught.value.exit_code == 4


def test_it_waits_with_a_message_and_then_runs(holder):
    notes = []

    def note(text):
        notes.append(text)
        holder.stdin.write("\n")
        holder.stdin.flush()

    with measurement_lock("mine", wait=True, note=note):
        pass
    assert "the other one" in notes[0]


def test_a_holder_that_was_killed_holds_nothing(holder):
    holder.kill()
    holder.wait()
    done = threading.Event()
    with measurement_lock("mine", wait=False, note=print):
        done.set()
    assert done.is_set()
