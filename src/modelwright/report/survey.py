"""The answer of `wright sys`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.report._units import human_bytes
from modelwright.targets import EpRow, Host, Status, Survey

if TYPE_CHECKING:
    import rich.console
    import rich.table
    import rich.text
else:
    rich = lazy("rich")

_STYLES = {
    Status.USABLE: "bold green",
    Status.SIMULATOR: "bold cyan",
    Status.NO_DEVICE: "yellow",
    Status.NOT_INSTALLED: "dim",
    Status.OTHER_PLATFORM: "dim",
    Status.CRASHES: "bold red",
    Status.HANGS: "bold red",
    Status.FAILS: "red",
}


_ABSENT = (Status.NOT_INSTALLED, Status.OTHER_PLATFORM)


def render_survey(found: Survey, console: rich.console.Console) -> None:
    for label, text in _host_lines(found.host):
        console.print(rich.text.Text.assemble((f"{label:<10}", "bold"), text), soft_wrap=True)
    versions = ", ".join(f"{name} {version}" for name, version in found.libraries.items() if version)
    console.print(rich.text.Text.assemble((f"{'Libraries':<10}", "bold"), versions), soft_wrap=True)
    console.print()
    console.print(_table(row for row in found.eps if row.status not in _ABSENT))
    for row in found.eps:
        if row.status in _ABSENT:
            why = "; ".join(filter(None, (row.reason, row.next_step)))
            console.print(f" {row.ep:<10} {row.status.value}: {why}", style="dim", soft_wrap=True)
    for runtime in found.runtimes:
        state = "ready" if runtime.status == "ready" else f"broken: {runtime.reason}"
        console.print(f" runtime {runtime.name}: {state}  {', '.join(runtime.providers)}", soft_wrap=True)
    console.print()
    console.print(_verdict(found), soft_wrap=True)


def _host_lines(host: Host) -> list[tuple[str, str]]:
    cpu = host.cpu
    features = ", ".join(cpu.features) if cpu.features is not None else f"features unknown: {cpu.features_reason}"
    accelerators = host.accelerators_reason or "none seen by the OS"
    if host.accelerators:
        accelerators = ", ".join(f"{a.kind} {a.vendor or 'unknown vendor'} ({a.name})" for a in host.accelerators)
    cores = f"{cpu.usable:g} of {cpu.logical} logical CPUs usable"
    memory = f"{human_bytes(host.memory_bytes)}, {human_bytes(host.memory_available_bytes)} free"
    return [
        ("Machine", f"{host.system} {host.machine}, Python {host.python}"),
        ("CPU", f"{cpu.model or 'unknown'}: {cores}; {features}"),
        ("Memory", f"{memory}"),
        ("Devices", accelerators),
    ]


def _table(rows: Iterable[EpRow]) -> rich.table.Table:
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("EP", no_wrap=True)
    table.add_column("on this machine", no_wrap=True)
    table.add_column("targets", no_wrap=True)
    table.add_column("version", no_wrap=True)
    table.add_column("why, and what to do", overflow="fold")
    for row in rows:
        status = rich.text.Text(row.status.value, style=_STYLES[row.status])
        why = "; ".join(filter(None, (row.reason, row.next_step)))
        table.add_row(row.ep, status, ", ".join(row.targets) or "-", row.version or "-", rich.text.Text(why))
    return table


def _verdict(found: Survey) -> str:
    runs = [target for row in found.eps if row.status is Status.USABLE for target in row.targets]
    simulated = [target for row in found.eps if row.status is Status.SIMULATOR for target in row.targets]
    parts = [f"This machine runs {', '.join(runs)}" if runs else "This machine runs nothing yet"]
    if simulated:
        parts.append(f"simulates {', '.join(simulated)} (right answers, meaningless timings)")
    return " and ".join(parts) + "."
