"""The library names parameters; on the command line they are options. One translation, for every message."""

from __future__ import annotations

import re

import click

from modelwright.errors import WrightError

_PARAMETER = re.compile(r"`([a-z][a-z0-9_]*)`")
_OTHERWISE = {"columns": "column", "targets": "target", "target": "targets", "speed_on": "on"}
"""Parameters that hold what an option gives piece by piece, a target that may be one of several, and what the command
calls otherwise."""


def with_flags(error: WrightError, command: click.Command | None) -> WrightError:
    """The same error, in the words of whoever typed `command`."""
    for part in ("problem", "cause", "fix"):
        setattr(error, part, in_flags(getattr(error, part), command))
    return error


def in_flags(text: str, command: click.Command | None) -> str:
    """A text of the library, with the options of `command` for its parameters."""
    names = {} if command is None else {str(item.name): _spelling(item) for item in command.params}

    def spelt(found: re.Match[str]) -> str:
        word = found.group(1)
        return names.get(word) or names.get(_OTHERWISE.get(word, "")) or found.group(0)

    return _PARAMETER.sub(spelt, text)


def _spelling(item: click.Parameter) -> str:
    return max(item.opts, key=len) if isinstance(item, click.Option) else str(item.name).upper()
