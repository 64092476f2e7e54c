"""Windows cannot be tried here; that the room imports there, and the layout of its structures, can."""

from __future__ import annotations

import subprocess
import sys
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
ctypes.WinDLL = lambda *_, **__: types.SimpleNamespace(CreateJobObjectW=types.SimpleNamespace())
import modelwright.worker, modelwright.worker._serve, modelwright.worker._windows as windows
print(*map(ctypes.sizeof, (windows._Limits, windows._Accounting, windows._Memory)))
"""


def test_the_room_imports_without_anything_posix_and_its_structures_have_the_documented_sizes() -> None:
    done = subprocess.run([sys.executable, "-c", IMITATION], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split() == ["144", "48", "72"]


def test_a_virtual_environment_is_run_by_the_interpreter_behind_it(tmp_path: Path) -> None:
    python = tmp_path / "Scripts" / "python.exe"
    config = tmp_path / "pyvenv.cfg"
    config.write_text("home = C:\\Python\nexecutable = C:\\Python\\python.exe\n")
    assert past_launcher(str(python)) == ("C:\\Python\\python.exe", {"__PYVENV_LAUNCHER__": str(python)})
    config.unlink()
    assert past_launcher(str(python)) == (str(python), {})
