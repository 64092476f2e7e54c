"""The data file: the whole result, every sample in it, written so that it is there or not, never half."""

from __future__ import annotations

import os
from pathlib import Path

from modelwright import __version__
from modelwright._json import canonical, plain
from modelwright.errors import UsageError

SCHEMA_VERSION = 1


def check_output(path: Path | None) -> None:
    """Find out before measuring that the result could not be kept."""
    if path is None:
        return
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(
            f"the result cannot be written to {path}",
            cause="it is a folder" if path.is_dir() else f"{folder} is no folder that can be written to",
            fix="give --output a file in an existing folder",
        )


def save_result(path: Path, command: str, result: object) -> None:
    """Write `result` as strict JSON, in place of what was there."""
    document = {"schema_version": SCHEMA_VERSION, "command": command, "tool_version": __version__, **plain(result)}
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("wb") as file:
        file.write(canonical(document))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
