"""The one console everything is rendered on: text is text, whoever wrote it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import IO, Any

import rich.cells
import rich.console
import rich.segment
import rich.text

from modelwright._text import visible

_LABEL = re.compile(r"\S.{0,20}?\s{2,}(?=\S)")
_HANGING = 2


class Screen(rich.console.Console):
    """Never reads markup or emoji codes, and shows control characters, newlines too, instead of sending them.

    So a name out of a model can neither colour the answer, break it, nor forge a line of it, and no renderer has to
    think of that. Styles are given with `rich.text.Text`; a line break is a `print` of its own.
    """

    def __init__(
        self,
        stream: IO[str],
        *,
        color: bool = True,
        width: int | None = None,
        spoken: Callable[[str], str] | None = None,
    ) -> None:
        """`spoken` puts the sentences of the library into the words of whoever reads them."""
        super().__init__(
            file=stream, no_color=None if color else True, width=width, highlight=False, markup=False, emoji=False
        )
        self._spoken = spoken

    def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
        """A long line is broken between words on a terminal, which would cut them, and stays whole in a file."""
        objects = tuple(map(self.said, objects))
        if not (soft_wrap and self.is_terminal):
            super().print(*objects, soft_wrap=soft_wrap, **options)
        else:
            super().print(*(self._hanging(one) for one in objects), **options)

    def said(self, shown: Any) -> Any:
        """In the words of whoever reads it. Of a text of several styles nobody could tell which words they are for."""
        if self._spoken is None:
            return shown
        if isinstance(shown, rich.text.Text) and not shown.spans:
            return rich.text.Text(self._spoken(shown.plain), style=shown.style)
        return self._spoken(shown) if isinstance(shown, str) else shown

    def _hanging(self, shown: Any) -> Any:
        """What does not fit on its line goes on below its text, not below its label."""
        text = self.render_str(shown) if isinstance(shown, str) else shown
        if not isinstance(text, rich.text.Text) or rich.cells.cell_len(visible(text.plain)) <= self.width:
            return shown
        indent = _indent(text.plain)
        first, *more = _visible_text(text).wrap(self, self.width - indent)
        return rich.console.Group(first, *(rich.text.Text(" " * indent).append_text(line) for line in more))

    def render_str(self, text: str, **options: Any) -> rich.text.Text:
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: rich.console.RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[rich.segment.Segment]:
        if isinstance(renderable, rich.text.Text):
            renderable = _visible_text(renderable)
        return super().render(renderable, options)


def _indent(line: str) -> int:
    """Where the text begins after a label and the spaces behind it, or after the spaces in front."""
    label = _LABEL.match(line)
    return label.end() if label else len(line) - len(line.lstrip()) + _HANGING


def _visible_text(text: rich.text.Text) -> rich.text.Text:
    """A copy with the same styles on the same characters, also where one became several."""
    if visible(text.plain) == text.plain:
        return text
    shown = [visible(character) for character in text.plain]
    ends = [0, *accumulate(map(len, shown))]
    spans = [rich.text.Span(ends[span.start], ends[min(span.end, len(shown))], span.style) for span in text.spans]
    found = text.blank_copy("".join(shown))
    found.spans = spans
    return found
