"""A build folder beside its manifest, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright.models import BuildCheck

if TYPE_CHECKING:
    import rich.console


def render_check(found: BuildCheck, console: rich.console.Console) -> None:
    for word, names in (("missing", found.missing), ("changed", found.changed), ("extra", found.extra)):
        for name in names:
            console.print(f"{word:<8} {name}", markup=False, highlight=False, soft_wrap=True)
    if found.whole:
        console.print("whole: every file is what was built", highlight=False)
