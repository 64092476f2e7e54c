"""The data file: the whole result, every sample in it."""

from __future__ import annotations

from pathlib import Path

from modelwright import __version__
from modelwright._json import canonical, plain
from modelwright._output import SEAL, write_output

SCHEMA_VERSION = 1


def save_result(path: Path, command: str, result: object) -> None:
    """Write `result` as strict JSON; an earlier result there is replaced, no other file is."""
    head = {"schema_version": SCHEMA_VERSION, "command": command, "tool_version": __version__, "seal": SEAL}
    write_output(path, canonical({**head, **plain(result)}).decode() + "\n")
