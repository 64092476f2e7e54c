"""A store in a temp folder, small artifacts, disks of a few megabytes, and children that run our scripts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from modelwright.store import Artifact, Key, Produced, Store, stage_key

SCRIPTS = Path(__file__).parent / "scripts"


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """Memory instead of a disk where there is enough: thousands of fsyncs prove nothing more here."""
    memory = Path("/dev/shm")
    if not (os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 200 << 20):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir=memory))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "a store"


@pytest.fixture
def store(root: Path) -> Iterator[Store]:
    with Store(root) as opened:
        yield opened


@pytest.fixture
def key() -> Callable[..., Key]:
    def make(**params: Any) -> Key:
        return stage_key(stage="export", version="1", libraries={}, inputs={}, params=params)

    return make


@pytest.fixture
def writer() -> Callable[[dict[str, bytes]], Callable[[Path], Produced]]:
    """A producer of the given files; every file has the role `model`, other than `*.data`."""

    def make(files: dict[str, bytes]) -> Callable[[Path], Produced]:
        def produce(folder: Path) -> Produced:
            for name, content in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
            return Produced({name: "data" if name.endswith(".data") else "model" for name in files})

        return produce

    return make


@pytest.fixture
def content() -> Callable[[Artifact], dict[str, bytes]]:
    def read(artifact: Artifact) -> dict[str, bytes]:
        return {file.name: artifact.path_of(file.name).read_bytes() for file in artifact.files}

    return read


@pytest.fixture
def script() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start one of our scripts; its last line on stdout is JSON (see `result`)."""
    started: list[subprocess.Popen[str]] = []

    def start(name: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, str(SCRIPTS / f"{name}.py"), *map(str, arguments)]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None, text=True))
        return started[-1]

    yield start
    for child in started:
        child.kill()
        child.communicate()


@pytest.fixture
def result() -> Callable[[subprocess.Popen[str]], Any]:
    def wait(child: subprocess.Popen[str]) -> Any:
        out, _ = child.communicate(timeout=120)
        assert child.returncode == 0, out
        return json.loads(out.splitlines()[-1])

    return wait
