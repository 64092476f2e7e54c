"""A package for users' machines, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.answers.ship import NOT_RUN, ChosenVariant, GateRow, ShippedVariant, ShipResult
from modelwright.report._tables import Col, fitted
from modelwright.report._units import human_bytes

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")

_STYLES = {
    "passed": "green",
    "failed": "red",
    "waiver expired": "red",
    "waived": "yellow",
    "not run": "yellow",
    "undecided": "yellow",
}


def render_ship(result: ShipResult, console: rich.console.Console) -> None:
    columns = [Col("variant", "name"), Col("precision"), Col("can go"), Col("size", "number"), Col("needs", "text")]
    rows = [
        (one.target, one.precision, one.carried, human_bytes(one.size), needs_words(one)) for one in result.variants
    ]
    console.print(fitted(columns, rows, console.width))
    gates = [
        (row.gate, row.target or "all", rich.text.Text(row.word, style=_STYLES[row.word]), reason_words(row))
        for row in result.gates
    ]
    columns = [Col("gate"), Col("variant", "name"), Col("answer"), Col("why", "text")]
    console.print(fitted(columns, gates, console.width))
    for one in result.chosen:
        console.print(rich.text.Text(chosen_words(one)), soft_wrap=True)
    for line in fix_lines(result):
        console.print(rich.text.Text(line), soft_wrap=True)
    for waiver in result.idle_waivers:
        about = f"{waiver.gate}{f' of {waiver.target}' if waiver.target else ''}"
        console.print(rich.text.Text(f"the waiver of {about} excuses nothing"), soft_wrap=True)
    if result.licence is None:
        console.print(rich.text.Text("the licence of the model is not said: `licence` names it"), soft_wrap=True)
    style = {True: "bold green", False: "bold red", None: "bold yellow"}[result.passed]
    console.print(rich.text.Text(verdict_words(result), style=style), soft_wrap=True)
    console.print(
        rich.text.Text(f"{result.folder}: {human_bytes(result.size)}, seal {result.selection_seal}"), soft_wrap=True
    )


def fix_lines(result: ShipResult) -> Iterator[str]:
    """What tells what nobody could say, once for all that it would tell."""
    open_rows = [row for row in result.gates if row.holds is not True and row.fix is not None]
    for fix in dict.fromkeys(row.fix for row in open_rows):
        about = [f"{row.gate} of {row.target}" if row.target else row.gate for row in open_rows if row.fix == fix]
        yield f"next: {', '.join(about)}: {fix}"


def needs_words(variant: ShippedVariant) -> str:
    """What it was seen to run with, at least."""
    return ", ".join(least.words for least in variant.needs)


def reason_words(row: GateRow) -> str:
    said = row.reason.removeprefix(f"{NOT_RUN}: ") if row.word == NOT_RUN else row.reason
    if row.waiver is None:
        return said
    end = "ended on" if row.expired else "until"
    return f"{said}; waived: {row.waiver.reason} ({end} {row.waiver.until})"


def chosen_words(one: ChosenVariant) -> str:
    before = "; ".join(f"not {name}: {reason}" for name, reason in one.tried)
    took = f"takes {one.chosen}" if one.chosen is not None else "takes nothing"
    why = "" if one.ran else f", which does not run: {one.reason}"
    return f"{one.place}: the selector {took}{why}{f' ({before})' if before else ''}"


def verdict_words(result: ShipResult) -> str:
    if result.passed is True:
        return "ready to ship"
    wrong = ", ".join(dict.fromkeys(row.gate for row in result.gates if row.holds is result.passed))
    return (
        f"not ready: {wrong}" if result.passed is False else f"cannot tell: not every variant has an answer on {wrong}"
    )
