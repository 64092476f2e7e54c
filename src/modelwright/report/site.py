"""What `wright site build` answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright.report._units import human_bytes

if TYPE_CHECKING:
    import rich.console

    from modelwright.vocabulary import Result


def render_site(found: Result, console: rich.console.Console) -> None:
    said = found.content()
    words = f"{said['models']} models, {said['targets']} targets, {said['cells']} cells, {said['records']} records"
    console.print(f"{words}: {said['pages']} pages, {human_bytes(said['bytes'])}", soft_wrap=True)
    console.print(said["index"], soft_wrap=True)
