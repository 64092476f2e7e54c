"""The runtimes on this machine: listing, finding, removing."""

from __future__ import annotations

import difflib
import json
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from modelwright import _json, home
from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import ExecutionError, UsageError
from modelwright.worker._inspect import import_module
from modelwright.worker._runtime import Runtime
from modelwright.worker._worker import run

if TYPE_CHECKING:
    import filelock
else:
    filelock = lazy("filelock")

_RECORD = "complete.json"
_CHECK_S = 120.0
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class RuntimeStatus:
    """One runtime as found on disk. `reason` says why it is broken."""

    name: str
    status: Literal["ready", "broken"]
    reason: str | None = None
    runtime: Runtime | None = None


def list_runtimes() -> tuple[RuntimeStatus, ...]:
    """Every runtime, each tried in a child: its interpreter must start and import onnxruntime."""
    return tuple(_check(name) for name in runtime_names())


def find_runtime(name: str) -> Runtime:
    """The runtime of this name. It is not tried: the first task will show."""
    names = runtime_names()
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        known = f"Known: {', '.join(names)}." if names else "There are none yet."
        raise UsageError(
            f"There is no runtime '{name}'.",
            cause=known,
            fix=f"Did you mean '{close[0]}'?" if close else f"Create it: wright runtime create {name} PACKAGE...",
        )
    runtime = read_record(name)
    if runtime is None:
        raise ExecutionError(
            f"The runtime '{name}' is broken.",
            cause="its installation did not finish",
            fix=f"Create it again: wright runtime create {name} PACKAGE...",
        )
    return runtime


def remove_runtime(name: str) -> None:
    """Delete a runtime, also a broken one."""
    if name not in runtime_names():
        find_runtime(name)
    with locked(name):
        erase(name)


def folder_of(name: str) -> Path:
    """Where a runtime lives. Its name becomes a folder, so it is checked here."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"'{name}' is not a name for a runtime.",
            cause="a name has lowercase letters and digits, with single dashes between them",
            fix="Choose a name such as 'openvino' or 'ort-124'.",
        )
    return home.runtimes_dir() / name


def python_of(folder: Path) -> Path:
    return folder / "Scripts" / "python.exe" if sys.platform == "win32" else folder / "bin" / "python"


def locked(name: str) -> filelock.BaseFileLock:
    """One process at a time makes or removes a runtime."""
    root = folder_of(name).parent
    root.mkdir(parents=True, exist_ok=True)
    return filelock.FileLock(root / f".{name}.lock")


def erase(name: str) -> None:
    folder = folder_of(name)
    # The record goes first: a removal that stops half-way leaves a broken runtime, not a lying one.
    (folder / _RECORD).unlink(missing_ok=True)
    if folder.exists():
        shutil.rmtree(folder)


def write_record(runtime: Runtime) -> None:
    """The last step of a creation: without this file the runtime is broken."""
    folder = folder_of(runtime.name)
    unfinished = folder / f"{_RECORD}.part"
    unfinished.write_text(_json.dumps(runtime), encoding="utf-8")
    unfinished.replace(folder / _RECORD)


def read_record(name: str) -> Runtime | None:
    """The finished runtime, or None when there is none or its record cannot be read."""
    folder = folder_of(name)
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        return Runtime(
            name=name,
            python=python_of(folder),
            packages=tuple(record["packages"]),
            versions=tuple((str(package), str(version)) for package, version in record["versions"]),
            created=record["created"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def runtime_names() -> list[str]:
    """What there is by that name, in whatever state."""
    root = home.runtimes_dir()
    if not root.is_dir():
        return []
    return sorted(entry.name for entry in root.iterdir() if entry.is_dir() and _NAME.fullmatch(entry.name))


def _check(name: str) -> RuntimeStatus:
    runtime = read_record(name)
    if runtime is None:
        return RuntimeStatus(name, "broken", "its installation did not finish")
    result = run(import_module.call("onnxruntime"), runtime=runtime, timeout=_CHECK_S)
    if result.failure is not None:
        return RuntimeStatus(name, "broken", f"onnxruntime does not import: {result.failure.message}", runtime)
    return RuntimeStatus(name, "ready", None, runtime)
