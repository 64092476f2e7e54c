"""The one console everything is rendered on: text is text, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import IO, Any

import rich.console
import rich.segment
import rich.text

from modelwright._text import visible


class Screen(rich.console.Console):
    """Never reads markup or emoji codes, and shows control characters, newlines too, instead of sending them.

    So a name out of a model can neither colour the answer, break it, nor forge a line of it, and no renderer has to
    think of that. Styles are given with `rich.text.Text`; a line break is a `print` of its own.
    """

    def __init__(self, stream: IO[str], *, color: bool = True, width: int | None = None) -> None:
        super().__init__(
            file=stream, no_color=None if color else True, width=width, highlight=False, markup=False, emoji=False
        )

    def render_str(self, text: str, **options: Any) -> rich.text.Text:
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: rich.console.RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[rich.segment.Segment]:
        if isinstance(renderable, rich.text.Text):
            renderable = _visible_text(renderable)
        return super().render(renderable, options)


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
