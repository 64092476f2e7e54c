"""Results of benchmarks as files, with what they were measured on."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")
LIBRARIES = ("numpy", "onnx", "onnxruntime", "onnxruntime-qnn", "torch", "transformers")


def environment() -> dict[str, object]:
    versions = {}
    for name in LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {cpu.partition(': ')[2] or 'unknown CPU'}",
        "cpus": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "libraries": versions,
    }


def write(name: str, result: Mapping[str, Any]) -> None:
    """All at once: a run that is stopped leaves the last whole file."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    text = json.dumps({"benchmark": name, **environment(), **result}, indent=2, allow_nan=False)
    scratch = path.with_suffix(".part")
    scratch.write_text(text + "\n")
    scratch.replace(path)


def read(name: str) -> dict[str, Any]:
    """What an earlier run wrote; nothing where there was none."""
    path = RESULTS / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    return found
