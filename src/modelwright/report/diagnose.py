"""The answer of `wright diagnose`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.answers import Cause, Diagnosis, LogReading, TriedCure
from modelwright.report.analysis import titled

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")

_UNKNOWN_SHOWN, _WHERE_SHOWN = 8, 5
_TONES = {True: "green", False: "bold red", None: "yellow"}


def render_diagnosis(found: Diagnosis, console: rich.console.Console) -> None:
    console.print(rich.text.Text(headline(found), style=_TONES[found.healthy]), soft_wrap=True)
    for number, cause in enumerate(found.causes, 1):
        _cause(number, cause, console)
    for words in found.undecided:
        console.print(rich.text.Text(f"open: {words}", style="yellow"), soft_wrap=True)
    for words in found.next_steps:
        console.print(rich.text.Text(f"next: {words}", style="cyan"), soft_wrap=True)
    for look in found.looked_at:
        mark = {True: "good", False: "bad", None: "unknown"}[look.ok]
        console.print(rich.text.Text(f"looked at {look.what}: {mark}: {look.said}", style="dim"), soft_wrap=True)
    if found.smallest is not None:
        console.print(rich.text.Text(smallest_words(found)), soft_wrap=True)
    if found.log is not None:
        _log(found.log, console)


def headline(found: Diagnosis) -> str:
    """The answer in one sentence."""
    if found.causes:
        return found.causes[0].sentence
    if found.log is not None and found.log.causes:
        return _first_of(found.log)
    if found.log is not None and found.log.unknown:
        return "the errors in the log are not known here"
    if not found.looked_at:
        return "no line of the log looks like an error"
    return found.without_cause


def _first_of(log: LogReading) -> str:
    """One log may tell of several errors that have nothing to do with each other."""
    others = sum(cause.wraps == log.causes[0].wraps for cause in log.causes[1:]) + len(log.unknown)
    more = "" if not others else f" (and {others} other error{'s' if others > 1 else ''} in the log, below)"
    return f"{log.causes[0].cause}{more}"


def smallest_words(found: Diagnosis) -> str:
    assert found.smallest is not None
    small = found.smallest
    rest = "" if small.minimal else "; less may do"
    count = f"{len(small.operators)} of {small.of} operators, {small.tries} tries{rest}"
    return f"smallest model that shows it: {small.path} ({count}): {', '.join(small.operators[:_WHERE_SHOWN])}"


def cure_words(cure: TriedCure) -> str:
    word = {True: "cures it", False: "does not cure it", None: "cannot tell"}[cure.held]
    return f"{titled(cure.title, cure.how)}: {word}: {cure.before} → {cure.after}"


def _cause(number: int, cause: Cause, console: rich.console.Console) -> None:
    console.print(rich.text.Text(f"{number}. {cause.sentence} [{cause.rule}]", style="bold"), soft_wrap=True)
    for fact in cause.shown_by:
        console.print(rich.text.Text(f"   shown by: {fact}"), soft_wrap=True)
    if cause.where:
        more = f" and {len(cause.where) - _WHERE_SHOWN} more" if cause.where[_WHERE_SHOWN:] else ""
        console.print(rich.text.Text(f"   where: {', '.join(cause.where[:_WHERE_SHOWN])}{more}"), soft_wrap=True)
    for cure in cause.cures:
        style = {True: "green", False: "red", None: "yellow"}[cure.held]
        console.print(rich.text.Text(f"   tried: {cure_words(cure)}", style=style), soft_wrap=True)
    if cause.remedy is not None:
        console.print(rich.text.Text(f"   next: {cause.remedy}", style="cyan"), soft_wrap=True)
    if cause.cites:
        console.print(rich.text.Text(f"   see: {', '.join(cause.cites)}", style="dim"), soft_wrap=True)


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
        words = f"not known: line {line.line}{times}: {line.text}"
        console.print(rich.text.Text(words, style="yellow"), soft_wrap=True)
    if len(log.unknown) > _UNKNOWN_SHOWN:
        console.print(rich.text.Text(f"and {len(log.unknown) - _UNKNOWN_SHOWN} more that are not known", style="dim"))
