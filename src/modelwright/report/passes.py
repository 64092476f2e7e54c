"""The answers of `wright optimize --list` and `--check`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy

if TYPE_CHECKING:
    import rich.console
    import rich.table
    import rich.text
else:
    rich = lazy("rich")


def render_table(found: Mapping[str, Any], console: rich.console.Console) -> None:
    table = rich.table.Table("pass", "kind", "any EP", "what it does", box=rich.box.SIMPLE_HEAD, pad_edge=False)
    for item in found["passes"]:
        table.add_row(item.name, item.kind, "yes" if item.portable else "no", item.summary)
    console.print(table)
    for name, passes in found["presets"].items():
        console.print(rich.text.Text.assemble("preset ", (name, "bold"), f": {len(passes)} passes"))


def render_effects(found: Mapping[str, Any], console: rich.console.Console) -> None:
    effects = found["effects"]
    fired = [effect for effect in effects if effect.fired]
    if fired:
        table = rich.table.Table("pass", "nodes", "operators", box=rich.box.SIMPLE_HEAD, pad_edge=False)
        for effect in fired:
            delta = ", ".join(f"{name} {change:+d}" for name, change in effect.delta)
            table.add_row(effect.name, f"{effect.nodes_before} → {effect.nodes_after}", delta)
        console.print(table)
    tried = [effect for effect in effects if effect.problem is None]
    console.print(f"{len(fired)} of {len(tried)} passes change this model")
    for effect in effects:
        if effect.problem is not None:
            words = f"not tried: {effect.name}: {effect.problem}"
            console.print(rich.text.Text(words, style="yellow"), soft_wrap=True)
