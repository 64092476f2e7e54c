"""Temporary folders go with their process, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from modelwright._scratch import make_scratch, remove_scratch, scratch

HOLD = """
import sys, time
from pathlib import Path
from modelwright._scratch import make_scratch
folder = make_scratch("test", Path(sys.argv[1]))
(folder / "samples").write_bytes(b"x" * 1000)
print(folder, flush=True)
time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True)
    yield child, Path(child.stdout.readline().strip())
    child.kill()
    child.communicate()


def test_a_folder_goes_with_its_block(tmp_path):
    with scratch("test", tmp_path) as folder:
        (folder / "sub").mkdir()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_goes_with_the_next_folder(tmp_path, holder):
    child, folder = holder
    with scratch("test", tmp_path):
        assert (folder / "samples").exists()  # its maker is alive
    child.send_signal(signal.SIGKILL if os.name != "nt" else signal.SIGTERM)
    child.wait()
    with scratch("test", tmp_path):
        assert not folder.exists()
    assert list(tmp_path.iterdir()) == []


def test_two_of_one_process_do_not_meet(tmp_path):
    one, two = make_scratch("test", tmp_path), make_scratch("test", tmp_path)
    assert one.exists()
    assert two.exists()
    remove_scratch(one)
    remove_scratch(two)
    assert list(tmp_path.iterdir()) == []


def test_folders_that_only_look_alike_stay(tmp_path):
    (tmp_path / "modelwright-notes").mkdir()
    with scratch("test", tmp_path):
        pass
    assert (tmp_path / "modelwright-notes").exists()
