"""Making a runtime: a virtual environment in place, filled by pip, recorded when complete."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from modelwright.errors import UsageError
from modelwright.vocabulary import OnProgress, Progress
from modelwright.worker._inspect import installed_versions, run_command
from modelwright.worker._runtime import Runtime
from modelwright.worker._runtimes import erase, folder_of, locked, python_of, read_record, write_record
from modelwright.worker._worker import run

_INSTALL_S = 3600.0
_INSPECT_S = 120.0


def create_runtime(name: str, packages: Sequence[str], *, on_progress: OnProgress | None = None) -> Runtime:
    """Make the runtime `name` with these packages.

    One that is there with the same packages is returned; the remains of one that did not finish are replaced.
    """
    folder = folder_of(name)
    wanted = _checked(packages)
    with locked(name):
        existing = read_record(name)
        if existing is not None:
            return _same(existing, wanted)
        erase(name)
        python = python_of(folder)
        make, fill = _commands(folder, python)
        _execute(make, f"Making the runtime '{name}'", on_progress)
        _execute([*fill, *wanted], f"Installing {', '.join(wanted)}", on_progress)
        bare = Runtime(name, python)
        versions = run(installed_versions.call(), runtime=bare, timeout=_INSPECT_S).unwrap()
        created = datetime.now(UTC).isoformat(timespec="seconds")
        runtime = Runtime(name, python, wanted, versions, created)
        write_record(runtime)
        return runtime


def _commands(folder: Path, python: Path) -> tuple[list[str], list[str]]:
    """How to make the environment and how to fill it: with our pip, which saves seconds, or its own."""
    here = [sys.executable, "-I", "-m"]
    install = ["--disable-pip-version-check", "--no-input", "install"]
    if importlib.util.find_spec("pip") is None:
        return [*here, "venv", str(folder)], [str(python), "-I", "-m", "pip", *install]
    return [*here, "venv", "--without-pip", str(folder)], [*here, "pip", "--python", str(python), *install]


def _checked(packages: Sequence[str]) -> tuple[str, ...]:
    wrong = [package for package in packages if not package.strip() or package.startswith("-")]
    if not packages or wrong:
        raise UsageError(
            f"'{wrong[0]}' is not a package." if wrong else "A runtime needs at least one package.",
            cause="every argument after the name is a requirement for pip, such as onnxruntime-openvino",
            fix="wright runtime create openvino onnxruntime-openvino",
        )
    return tuple(packages)


def _same(existing: Runtime, wanted: tuple[str, ...]) -> Runtime:
    if set(existing.packages) == set(wanted):
        return existing
    raise UsageError(
        f"There is already a runtime '{existing.name}'.",
        cause=f"it was made with {', '.join(existing.packages)}",
        fix=f"Choose another name, or remove it first: wright runtime remove {existing.name}",
    )


def _execute(command: list[str], purpose: str, on_progress: OnProgress | None) -> None:
    if on_progress is not None:
        on_progress(Progress(purpose))
    run(run_command.call(command, purpose), timeout=_INSTALL_S, on_progress=on_progress).unwrap()
