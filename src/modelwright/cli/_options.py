"""Option groups: an option is written once here and means the same in every command."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from modelwright import __version__
from modelwright._json import dumps, plain
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import rich.console
else:
    rich = lazy("rich")

F = TypeVar("F", bound=Callable[..., Any])
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Output:
    """Where a command's answer goes: a JSON document or a rendering, always on stdout; notes on stderr."""

    json: bool
    quiet: bool
    color: bool

    def answer(self, command: str, result: object, render: Callable[[Any, rich.console.Console], None]) -> None:
        """Print the result of `command`."""
        if self.json:
            document = {"schema_version": SCHEMA_VERSION, "command": command, "tool_version": __version__}
            sys.stdout.write(dumps({**document, **plain(result)}) + "\n")
        else:
            render(result, self.console(sys.stdout))

    def note(self, text: str) -> None:
        """Something worth knowing that is not the answer."""
        if not self.quiet:
            sys.stderr.write(text + "\n")

    def console(self, stream: Any) -> rich.console.Console:
        return rich.console.Console(
            file=stream, no_color=None if self.color else True, highlight=False, soft_wrap=False
        )


def output_options(function: F) -> F:
    """Adds --json, -v, -q and --no-color, and hands the command an `Output`."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
    @click.option("-v", "--verbose", count=True, help="More detail on stderr; -vv adds tracebacks.")
    @click.option("-q", "--quiet", is_flag=True, help="Only errors on stderr.")
    @click.option("--no-color", is_flag=True, envvar="NO_COLOR", help="No colours (also NO_COLOR=1).")
    @functools.wraps(function)
    def wrapper(*args: Any, as_json: bool, verbose: int, quiet: bool, no_color: bool, **kwargs: Any) -> Any:
        level = logging.ERROR if quiet else (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
        logging.getLogger().setLevel(level)
        return function(*args, out=Output(as_json, quiet, not no_color), **kwargs)

    return wrapper  # type: ignore[return-value]
