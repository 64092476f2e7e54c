"""Metric libraries, imported when a task needs one."""

from __future__ import annotations

import importlib
from typing import Any

from modelwright.errors import ExecutionError


def library(name: str, package: str | None = None) -> Any:
    """The module; a missing one is an error that names the extra."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {name.partition(".")[0], package}:
            missing = error.name or name
        else:
            missing = package or name.partition(".")[0]
        raise ExecutionError(
            f"this task needs {missing}",
            cause=f"the package {missing} is not installed",
            fix="pip install 'modelwright[eval]'",
        ) from error
