"""The one line on stderr that says what is going on."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from modelwright._lazy import lazy

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")

Line = TypeVar("Line", bound="StatusLine")


class StatusLine:
    """Shown while it is entered; a quiet one shows nothing."""

    def __init__(self, console: rich.console.Console, *, quiet: bool) -> None:
        spinner = "line" if console.options.ascii_only else "dots"
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

    def tell(self, text: str, _: float | None) -> None:
        """Fits the worker's `on_progress`."""
        self.show(text)

    def show(self, text: str) -> None:
        if self._status is not None:
            # A string would be read as markup.
            self._status.update(rich.text.Text(text))
