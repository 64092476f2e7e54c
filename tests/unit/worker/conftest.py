"""Every test has its own home, and can see which processes it left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

TAG = "MODELWRIGHT_TEST_TAG"
TESTS = Path(__file__).parents[2]
SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def tag(monkeypatch: pytest.MonkeyPatch) -> str:
    """In the environment of every process started by the test."""
    value = uuid.uuid4().hex
    monkeypatch.setenv(TAG, value)
    return value


def running_with(tag: str) -> list[int]:
    """Live processes that were started with this tag."""
    needle = f"{TAG}={tag}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if needle in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def scratch_folders(owner: int) -> list[Path]:
    """Where this process keeps large values on their way."""
    roots = {SHARED_MEMORY, Path(tempfile.gettempdir())}
    return [path for root in roots for path in root.glob(f"modelwright-{owner}-*")]


def script_process(body: str) -> subprocess.Popen[bytes]:
    """A parent of its own: Python code that uses the worker, as a user's program would."""
    head = f"import sys\nsys.path.append({str(TESTS)!r})\nfrom unit.worker import tasks\n"
    code = head + "from modelwright.worker import Worker, run\n" + textwrap.dedent(body)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture
def program() -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    started = []

    def start(body: str) -> subprocess.Popen[bytes]:
        started.append(script_process(body))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def memory_group() -> Path | None:
    """Where a memory cgroup can be made (either version), or None."""
    root = Path("/sys/fs/cgroup")
    if (root / "memory" / "memory.limit_in_bytes").exists() and os.access(root / "memory", os.W_OK):
        return root / "memory"
    controllers = root / "cgroup.subtree_control"
    if controllers.exists() and "memory" in controllers.read_text().split() and os.access(root, os.W_OK):
        return root
    return None
