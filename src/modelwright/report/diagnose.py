"""The answer of `wright diagnose`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.answers import Diagnosis, LogReading

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")

_UNKNOWN_SHOWN = 8


def render_diagnosis(found: Diagnosis, console: rich.console.Console) -> None:
    console.print(rich.text.Text(headline(found), style=_TONES[found.healthy]), soft_wrap=True)
    if found.log is not None:
        _log(found.log, console)


_TONES = {True: "green", False: "bold red", None: "yellow"}


def headline(found: Diagnosis) -> str:
    """The answer in one sentence."""
    if found.causes:
        return found.causes[0].sentence
    if found.log is not None and found.log.causes:
        return found.log.causes[0].cause
    if found.log is not None and found.log.unknown:
        return "the errors in the log are not known here"
    return "nothing wrong was found" if found.healthy else "no cause was found"


def _log(log: LogReading, console: rich.console.Console) -> None:
    console.print(rich.text.Text(f"{log.file}: {log.lines} lines", style="dim"), soft_wrap=True)
    for cause in log.causes:
        times = f", {cause.times} times" if cause.times > 1 else ""
        role = "says where" if cause.wraps else "says why"
        console.print(rich.text.Text(f"line {cause.line} ({cause.about}, {role}{times}): {cause.text}"), soft_wrap=True)
        console.print(rich.text.Text(f"  means: {cause.cause}", style="bold"), soft_wrap=True)
        console.print(rich.text.Text(f"  next:  {cause.next}", style="cyan"), soft_wrap=True)
        known = f"{cause.known_of}; " if cause.known_of else ""
        console.print(rich.text.Text(f"  known: {known}{', '.join(cause.sources)}", style="dim"), soft_wrap=True)
    for line in log.unknown[:_UNKNOWN_SHOWN]:
        times = f" ({line.times} times)" if line.times > 1 else ""
        console.print(
            rich.text.Text(f"not known: line {line.line}{times}: {line.text}", style="yellow"), soft_wrap=True
        )
    if len(log.unknown) > _UNKNOWN_SHOWN:
        console.print(rich.text.Text(f"and {len(log.unknown) - _UNKNOWN_SHOWN} more that are not known", style="dim"))
