"""Windows cannot be tried here; that the room imports there, and the layout of its structures, can."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from modelwright.worker._windows import past_launcher

IMITATION = """
import ctypes, difflib, faulthandler, json, mmap, os, pathlib, selectors, signal, socket, subprocess, sys
import tempfile, types
sys.platform = "win32"
for name in ("SIGKILL", "SIGCHLD", "SIGHUP", "SIGPIPE", "SIGUSR1"):
    delattr(signal, name)
for name in ("fork", "wait4", "WNOHANG", "set_blocking", "setpgid", "sysconf", "getppid"):
    delattr(os, name)
sys.modules["resource"] = sys.modules["fcntl"] = None
edge = ("CreateJobObjectW", "OpenProcess")
ctypes.WinDLL = lambda *_, **__: types.SimpleNamespace(**{name: types.SimpleNamespace() for name in edge})
subprocess.CREATE_NO_WINDOW = subprocess.CREATE_NEW_PROCESS_GROUP = 0
import modelwright.worker, modelwright.worker._serve, modelwright.worker._windows as windows
"""


def test_the_room_imports_without_anything_posix_and_its_structures_have_the_documented_sizes() -> None:
    names = ("_Limits", "_Accounting", "_Memory", "_ProcessList")
    printed = _imitate(f"print(*(ctypes.sizeof(getattr(windows, name)) for name in {names}))")
    assert printed.split() == ["144", "48", "72", str(8 + 8 * 1024)]


def _imitate(code: str) -> str:
    """What the code prints where everything of Windows but its kernel is there."""
    command = [sys.executable, "-c", IMITATION + textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout


def test_a_launch_that_fails_leaves_no_socket_and_no_pipe() -> None:
    printed = _imitate("""
        from modelwright.worker._launch import launch
        def held():
            return len(os.listdir("/proc/self/fd"))
        before = held()
        for _ in range(3):
            try:
                launch(pathlib.Path("/gone/python"))
            except FileNotFoundError:
                print("gone", held() - before)
    """)
    assert printed.splitlines() == ["gone 0"] * 3


KERNEL = """
    sizes = {11: (100, 150), 12: (200, 220)}
    def query(job, kind, into, size, _):
        into._obj.count = len(sizes)
        into._obj.pids[0:2] = list(sizes)
        return 1
    def weigh(process, into, size):
        into._obj.working_set, into._obj.peak_working_set = sizes[process.value]
        return 1
    kernel = windows._kernel32
    kernel.QueryInformationJobObject, kernel.K32GetProcessMemoryInfo = query, weigh
    kernel.OpenProcess, kernel.CloseHandle = lambda access, inherit, pid: pid, lambda handle: 1
"""


def test_the_memory_of_the_whole_job_counts_and_its_peak_outlives_the_process() -> None:
    printed = _imitate(
        textwrap.dedent(KERNEL)
        + textwrap.dedent("""
        watch = object.__new__(windows._Supervisor)
        killed = types.SimpleNamespace(kill=lambda: print("killed"))
        watch._job, watch._process, watch._limit, watch._peak, watch._killed_for = 1, killed, 300, 0, None
        watch._check_memory()
        print(watch._held, watch._peak, watch._killed_for)
        watch._limit = 299
        watch._check_memory()
        print(watch._killed_for)
        kernel.QueryInformationJobObject = lambda *_: 0
        watch._check_memory()
        print(watch._held, watch._peak)
    """)
    )
    assert printed.splitlines() == ["300 220 None", "killed", "memory_limit", "300 220"]


def test_a_timer_prints_where_the_call_stands_because_nobody_can_ask() -> None:
    code = """
        import time
        from modelwright.worker import _runner
        from modelwright.worker._messages import Call
        from modelwright.worker._payload import Scratch
        _runner._ASKED_BY_NOBODY = True
        def stand_still(call, scratch):
            time.sleep(1)
            return None, None, None
        _runner._attempt = stand_still
        _runner._perform(Call(1, "m:f", None, None, None, 0.4), Scratch(()))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "in stand_still" in done.stderr


def test_a_virtual_environment_is_run_by_the_interpreter_behind_it(tmp_path: Path) -> None:
    python = tmp_path / "Scripts" / "python.exe"
    config = tmp_path / "pyvenv.cfg"
    config.write_text("home = C:\\Python\nexecutable = C:\\Python\\python.exe\n")
    assert past_launcher(str(python)) == ("C:\\Python\\python.exe", {"__PYVENV_LAUNCHER__": str(python)})
    config.unlink()
    assert past_launcher(str(python)) == (str(python), {})
