"""The answer of `wright runtime list`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.worker import RuntimeStatus

if TYPE_CHECKING:
    import rich.console
    import rich.table
    import rich.text
else:
    rich = lazy("rich")


def render_runtimes(found: Mapping[str, tuple[RuntimeStatus, ...]], console: rich.console.Console) -> None:
    runtimes = found["runtimes"]
    if not runtimes:
        console.print("no runtimes yet; make one: wright runtime create openvino onnxruntime-openvino")
        return
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
    for title in ("runtime", "state", "packages"):
        table.add_column(title)
    for status in runtimes:
        colour = "green" if status.status == "ready" else "red"
        versions = status.runtime.versions if status.runtime else ()
        asked = {name.split("=")[0] for name in status.runtime.packages} if status.runtime else set()
        shown = ", ".join(f"{name} {version}" for name, version in versions if name in asked)
        state = rich.text.Text(status.status, style=colour)
        table.add_row(status.name, state, shown or status.reason or "-")
    console.print(table)
