"""Two measurements never run at once."""

import os
import subprocess
import sys
import threading

import pytest

from modelwright.errors import ExecutionError
from modelwright.home import machine_dir
from modelwright.measure import measurement_lock

HOLD = """
import sys
from modelwright.measure import measurement_lock
with measurement_lock("the other one", wait=True, on_progress=print):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder():
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_without_waiting_it_says_who_measures(holder):
    with (
        pytest.raises(ExecutionError) as caught,
        measurement_lock("mine", wait=False, on_progress=print),
    ):
        pytest.fail("two at once")
    assert f"the other one (process {holder.pid}" in caught.value.cause
    assert caught.value.exit_code == 4


def test_another_home_measures_on_the_same_machine(holder, tmp_path, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "another home"))
    with pytest.raises(ExecutionError), measurement_lock("mine", wait=False, on_progress=print):
        pytest.fail("two at once")


def test_without_the_variable_the_lock_is_where_all_users_meet(monkeypatch):
    monkeypatch.delenv("MODELWRIGHT_LOCKS")
    monkeypatch.setenv("TMPDIR", "/nowhere")
    before = machine_dir()
    monkeypatch.setenv("MODELWRIGHT_HOME", "/nowhere")
    assert before == machine_dir()
    assert before.is_dir()


@pytest.mark.skipif(os.name == "nt", reason="modes are a matter of POSIX")
def test_every_user_may_open_the_lock(tmp_path):
    before = os.umask(0o077)
    try:
        with measurement_lock("mine", wait=False, on_progress=print):
            (file,) = tmp_path.glob("*.lock")
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o777 == 0o666


def test_a_folder_that_takes_no_lock_is_told_and_measured_without(tmp_path, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_LOCKS", str(tmp_path / "file"))
    (tmp_path / "file").write_text("no folder")
    notes = []
    with measurement_lock("mine", wait=False, on_progress=notes.append):
        pass
    assert "cannot be kept away" in notes[0].message


def test_it_waits_with_a_message_and_then_runs(holder):
    notes = []

    def note(progress):
        notes.append(progress)
        holder.stdin.write("\n")
        holder.stdin.flush()

    with measurement_lock("mine", wait=True, on_progress=note):
        pass
    assert "the other one" in notes[0].message


def test_a_holder_that_was_killed_holds_nothing(holder):
    holder.kill()
    holder.wait()
    done = threading.Event()
    with measurement_lock("mine", wait=False, on_progress=print):
        done.set()
    assert done.is_set()
