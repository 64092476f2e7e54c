"""The verbs: one module each, a function of values that answers with a `Result`. Import them from `modelwright`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.vocabulary import HasPage, Result

if TYPE_CHECKING:
    from modelwright.report import html as pages
    from modelwright.report import render
else:
    pages = lazy("modelwright.report.html")
    render = lazy("modelwright.report.render")


def _page(result: HasPage, *more: HasPage) -> str:
    return pages.page(result, *more)


def _cell(result: Result) -> str:
    return render.to_html(result)


HasPage.page, Result.html = staticmethod(_page), staticmethod(_cell)
