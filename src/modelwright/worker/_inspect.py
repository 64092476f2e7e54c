"""Tasks that look at an interpreter from inside, and the one that fills it."""

from __future__ import annotations

import importlib
import subprocess
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import ExecutionError
from modelwright.worker._runner import progress
from modelwright.worker._task import resolve, task

if TYPE_CHECKING:
    import importlib.metadata as metadata
else:
    metadata = lazy("importlib.metadata")


@task
def import_module(name: str) -> str | None:
    """Import a module; its version where it has one."""
    version = getattr(importlib.import_module(name), "__version__", None)
    return None if version is None else str(version)


@task
def get_ready(name: str, modules: tuple[str, ...]) -> None:
    """Import what the task of this name will need, before anybody calls it."""
    resolve(name)
    for module in modules:
        importlib.import_module(module)


@task
def installed_versions() -> tuple[tuple[str, str], ...]:
    """Every installed distribution with its version, sorted."""
    found = {one.metadata["Name"]: one.version for one in metadata.distributions()}
    return tuple(sorted(found.items(), key=lambda item: item[0].lower()))


@task
def run_command(command: list[str], purpose: str) -> None:
    """Run a command; its lines go to the log and become progress."""
    last_error = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            text = line.strip()
            last_error = text if text.lower().startswith("error") or not last_error else last_error
            progress(text)
    if process.returncode != 0:
        raise ExecutionError(
            f"{purpose} failed.",
            cause=last_error or f"the command ended with exit code {process.returncode}",
            fix="Check the package names and the network, then try again.",
        )
