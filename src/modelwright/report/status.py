"""The one line on stderr that says what is going on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from modelwright._lazy import lazy
from modelwright.vocabulary import Progress

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")

# Where lines stay, steps of one thing are said so far apart.
APART_S = 10.0

Line = TypeVar("Line", bound="StatusLine")


class StatusLine:
    """Takes progress, and shows it while it is entered; not a quiet one, nor where lines cannot change."""

    _within = ""
    _since = 0.0

    def __init__(self, console: rich.console.Console, *, quiet: bool) -> None:
        spinner = "line" if console.options.ascii_only else "dots"
        quiet = quiet or not console.is_terminal
        self._status = None if quiet else console.status(rich.text.Text("starting"), spinner=spinner)

    def __enter__(self: Line) -> Line:
        if self._status is not None:
            self._status.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.__exit__(kind, error, trace)

    def __call__(self, progress: Progress) -> None:
        within = ": ".join(word for word in (progress.label, progress.stage) if word)
        if within != self._within:
            self._within, self._since = within, time.monotonic()
        seconds = f" ({time.monotonic() - self._since:.0f} s)" if progress.label else ""
        self._show(f"{f'{within}: ' if within else ''}{line(progress)}{seconds}")

    def _show(self, text: str) -> None:
        if self._status is not None:
            # A string would be read as markup.
            self._status.update(rich.text.Text(text))


class KeptLines(StatusLine):
    """Everything is printed to stay, except the steps of a repetition, or of one thing that is done by and by: those
    share the one line that changes. Where no line can change, one in a while says how far it is."""

    _said = -math.inf

    def __init__(self, console: rich.console.Console, keep: Callable[[str], None], *, quiet: bool) -> None:
        super().__init__(console, quiet=quiet)
        self._keep = keep

    def __call__(self, progress: Progress) -> None:
        if progress.stage is not None or (progress.fraction is not None and self._status is not None):
            super().__call__(progress)
        elif progress.fraction is None or self._due():
            self._keep(line(progress))

    def _due(self) -> bool:
        now = time.monotonic()
        if now - self._said < APART_S:
            return False
        self._said = now
        return True


def line(progress: Progress) -> str:
    """What is done, and how much of it."""
    return f"{progress.message} {progress.fraction:.0%}" if progress.fraction else progress.message
