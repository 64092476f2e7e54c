"""A command is one call of the library. It is made from options, then run with progress, or printed as Python."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import MISSING, fields, is_dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import modelwright as mw
from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright._output import check_output
from modelwright.cli._flags import with_flags
from modelwright.cli._options import LIMITS, Output, write_document
from modelwright.cli._signals import delivered
from modelwright.cli._streams import complain, write_utf8
from modelwright.errors import WrightError
from modelwright.vocabulary import Data, OnProgress, Result

if TYPE_CHECKING:
    from modelwright.report import render, status
else:
    render = lazy("modelwright.report.render")
    status = lazy("modelwright.report.status")


_WIDTH, _ID = 100, 12


class VerbCall:
    """A verb of the library (`perf`, `support.run`) and what it is given. What equals its default is not said."""

    def __init__(self, verb: str, /, *given: Any, **named: Any) -> None:
        self.verb = verb
        self.given = given
        self.named = named

    def run(self, **more: Any) -> Any:
        wanted = {name: value for name, value in more.items() if name in self._defaults()}
        return attrgetter(self.verb)(mw)(*self.given, **self.named, **wanted)

    def python(self) -> str:
        """The call as somebody would write it."""
        defaults = self._defaults()
        named = {name: value for name, value in self.named.items() if value != defaults[name]}
        if named.get("data") == Data():
            del named["data"]
        words = [_spelt(value) for value in self._said()] + [f"{name}={_spelt(value)}" for name, value in named.items()]
        line = f"mw.{self.verb}({', '.join(words)})"
        return line if len(line) <= _WIDTH else f"mw.{self.verb}(\n    " + ",\n    ".join(words) + ",\n)"

    def _said(self) -> list[Any]:
        """Arguments in their places, without those at the end that are as by default."""
        words, defaults = list(self.given), list(self._defaults().values())
        while words and words[-1] == defaults[len(words) - 1]:
            words.pop()
        return words

    def _defaults(self) -> dict[str, Any]:
        found = inspect.signature(attrgetter(self.verb)(mw)).parameters
        return {name: parameter.default for name, parameter in found.items()}


@dataclass(frozen=True)
class Answering:
    """What a command adds to its call: its own name, what it writes beside the answer (and how Python says
    that), what the answer means."""

    command: str | None = None
    code: Callable[[Any], int] = lambda result: 0
    also: Callable[[Any], None] = lambda result: None
    progress: Callable[[Output], AbstractContextManager[OnProgress]] = lambda out: one_line(out)
    python: str | None = None


def answer(call: VerbCall, out: Output, how: Answering | None = None, **more: Any) -> int:
    """Run the call, show what it answers, also when it ends early, and say what that means as an exit code."""
    how = how or Answering()
    if out.as_python:
        write_utf8(as_python(call, out=out, more=how.python))
        return 0
    check_output(out.save)
    try:
        with how.progress(out) as line:
            result = call.run(on_progress=line, **more)
    except (KeyboardInterrupt, WrightError) as stop:
        partial = getattr(stop, "partial", None)
        if partial is None:
            raise
        show(partial, out, how)
        if isinstance(stop, WrightError):
            raise told(stop) from None
        raise
    show(result, out, how)
    return how.code(result)


def show(result: Result, out: Output, how: Answering) -> None:
    """What was found gets saved and printed, whatever happens meanwhile."""
    with delivered():
        if out.save is not None:
            result.save(out.save)
        out.draw(result)
        how.also(result)
        if out.json:
            write_document({**result.to_dict(), "command": how.command or result.kind})
        else:
            render.render(result, out.console(sys.stdout))
    say_record(result, out)


def say_record(result: Result, out: Output) -> None:
    """Where another machine found it, and under which it can be shown again, as the last line."""
    if result.measured_on is not None:
        out.note(f"measured on {result.measured_on}")
    if result.record_id is not None:
        out.note(f"record {result.record_id[:_ID]}")


def one_line(out: Output) -> AbstractContextManager[OnProgress]:
    """What is going on, on one line that changes."""
    return status.StatusLine(out.console(sys.stderr), quiet=out.quiet or out.json)


def kept_lines(out: Output) -> AbstractContextManager[OnProgress]:
    """What is going on, line by line, but for repetitions."""
    return status.KeptLines(out.console(sys.stderr), out.note, quiet=out.quiet)


def told(error: WrightError) -> click.exceptions.Exit:
    """The end of a command that failed after its partial answer was printed."""
    complain(with_flags(error, click.get_current_context().command))
    return click.exceptions.Exit(error.exit_code)


def as_python(call: VerbCall, *further: VerbCall, out: Output, more: str | None = None) -> str:
    """A whole program: the same calls, and what is kept of the first one; its page shows the others too."""
    names = ["result", *(each.verb for each in further)]
    lines = [f"{name} = {each.python()}" for name, each in zip(names, (call, *further), strict=True)]
    if out.save is not None:
        lines.append(f"result.save({_spelt(out.save)})")
    if out.html is not None:
        lines.append(f"result.save_page({', '.join([_spelt(out.html), *names[1:]])})")
    lines += [] if more is None else [more]
    limits = click.get_current_context().meta.get(LIMITS)
    if limits:
        words = ", ".join(f"{name}={value!r}" for name, value in limits.items())
        lines = [f"with mw.limited({words}):", textwrap.indent("\n".join(lines), "    ")]
    return "\n".join(["import modelwright as mw", "", *lines]) + "\n"


def _spelt(value: Any) -> str:
    if isinstance(value, Path):
        return repr(str(value))
    if isinstance(value, tuple | list):
        return _spelt(value[0]) if len(value) == 1 and _is_target(value[0]) else f"[{', '.join(map(_spelt, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_spelt(item)}" for key, item in value.items()) + "}"
    if _is_target(value):
        return repr(str(value))
    return _value(value) if is_dataclass(value) else repr(value)


def _is_target(value: Any) -> bool:
    return type(value).__name__ == "Target"


def _value(value: Any) -> str:
    """A value of ours, with only what was said: the first field in its place, the others by name."""
    words = []
    for place, field in enumerate(fields(value)):
        said = getattr(value, field.name)
        usual = field.default_factory() if field.default_factory is not MISSING else field.default
        if place == 0:
            words.append(_spelt(said))
        elif said != usual:
            words.append(f"{field.name}={_spelt(said)}")
    return f"mw.{type(value).__name__}({', '.join(words)})"
