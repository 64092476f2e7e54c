"""Where every answer passes through on its way to whoever asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from modelwright._lazy import lazy
from modelwright.vocabulary import Result

if TYPE_CHECKING:
    from modelwright.report import render
else:
    render = lazy("modelwright.report.render")

R = TypeVar("R", bound=Result)


def kept(result: R) -> R:
    """The answer, able to be drawn in a notebook."""
    Result.html = staticmethod(_html)
    return result


def _html(result: Result) -> str:
    return str(render.to_html(result))
