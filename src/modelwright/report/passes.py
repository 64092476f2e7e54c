"""The answers of `wright optimize --list` and `--check`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.report._tables import Col, fitted

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")


def render_table(found: Mapping[str, Any], console: rich.console.Console) -> None:
    columns = [Col("pass"), Col("kind", drop=1), Col("any EP"), Col("what it does", "text")]
    rows = [(item.name, item.kind, "yes" if item.portable else "no", item.summary) for item in found["passes"]]
    console.print(fitted(columns, rows, console.width))
    for name, passes in found["presets"].items():
        console.print(rich.text.Text.assemble("preset ", (name, "bold"), f": {len(passes)} passes"))


def render_effects(found: Mapping[str, Any], console: rich.console.Console) -> None:
    effects = found["effects"]
    fired = [effect for effect in effects if effect.fired]
    if fired:
        rows = [
            (
                effect.name,
                f"{effect.nodes_before} → {effect.nodes_after}",
                ", ".join(f"{name} {change:+d}" for name, change in effect.delta),
            )
            for effect in fired
        ]
        console.print(fitted([Col("pass"), Col("nodes"), Col("operators", "text")], rows, console.width))
    tried = [effect for effect in effects if effect.problem is None]
    console.print(f"{len(fired)} of {len(tried)} passes change this model")
    for effect in effects:
        if effect.problem is not None:
            words = f"not tried: {effect.name}: {effect.problem}"
            console.print(rich.text.Text(words, style="yellow"), soft_wrap=True)
