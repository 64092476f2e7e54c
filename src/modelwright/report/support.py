"""What `wright support` answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.report._tables import Col, fitted
from modelwright.report._units import human_bytes, human_count
from modelwright.stages.export import ExportOutline
from modelwright.support import (
    GATE_WORDS,
    LEVELS,
    ArmCount,
    GateResult,
    LadderRow,
    SupportBatch,
    SupportProbe,
    SupportRun,
    bound_words,
)

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")

_EFFORT = {
    "none": "nothing: a build has all it needs",
    "recipe": "a recipe: a build goes ahead, and rests on what nobody said",
    "family": "a file for its type: the general rules do not do",
    "shared": "more than a file for its type",
    None: "not known before its weights are loaded",
}
_STYLES = {True: "green", False: "red", None: "yellow"}
_SHOWN = 3
_TONES = {
    "pass": "green",
    "no-delta": "green",
    "needed": "green",
    "delta": "green",
    "fail": "red",
    "flaky": "red",
    "blocked": "yellow",
    "inert": "yellow",
    "inconclusive": "yellow",
    "not-reached": "dim",
}


def render_probe(found: SupportProbe, console: rich.console.Console) -> None:
    for label, text in _facts(found):
        console.print(rich.text.Text(f"{label:<11}", style="bold").append(text, style="not bold"), soft_wrap=True)
    rows = [
        (one.task, _word(one.export), _word(one.inputs), ", ".join(one.forms), one.label or "nothing scores it")
        for one in found.tasks
    ]
    words = [Col("task", "name"), Col("export"), Col("inputs")]
    columns = [*words, Col("calibrates on", "text"), Col("eval label", "text")]
    console.print(fitted(columns, rows, console.width))
    if found.refused is not None:
        console.print(rich.text.Text(f"not this checkpoint: {found.refused}", style="red"), soft_wrap=True)
    line = rich.text.Text("at least    ", style="bold").append(_EFFORT[found.effort], style=_STYLES[found.builds])
    console.print(line, soft_wrap=True)
    for reason in found.reasons:
        console.print(f"  {reason}", soft_wrap=True)
    if found.builds:
        console.print(f"next: wright build {found.model} --target cpu -o build", soft_wrap=True)
    elif found.effort == "family":
        console.print("next: docs/adding-a-model.md says what the file holds", soft_wrap=True)


def render_gate(found: GateResult, console: rich.console.Console) -> None:
    rows = [
        (arm.name, f"{arm.works} of {arm.runs}", _bound(arm), str(arm.graphs), arm.failure or "") for arm in found.arms
    ]
    columns = [Col("arm", "name"), Col("builds"), Col("95 %"), Col("graphs"), Col("why not", "text")]
    console.print(fitted(columns, rows, console.width))
    line = rich.text.Text("gate        ", style="bold").append(found.word, style=_TONES[found.word])
    console.print(line.append(f": {GATE_WORDS[found.word]}", style="not bold"), soft_wrap=True)
    if found.differs:
        console.print(f"  differs: {', '.join(found.differs)}", soft_wrap=True)
    if found.inert:
        console.print(f"  changes nothing: {', '.join(found.inert)}", soft_wrap=True)


def _bound(arm: ArmCount) -> str:
    return bound_words(arm) if arm.runs and arm.works == arm.runs else ""


def render_run(found: SupportRun, console: rich.console.Console) -> None:
    console.print(rich.text.Text("Model      ", style="bold").append(found.claim.source.name, style="not bold"))
    claimed = f"{found.claim.outcome} up to {found.claim.ceiling}, effort {found.claim.effort}"
    console.print(rich.text.Text("Claim      ", style="bold").append(claimed, style="not bold"), soft_wrap=True)
    if found.gate is not None:
        render_gate(found.gate, console)
    _rows(found.rows, console)
    if found.base:
        console.print("without the contribution:")
        _rows(found.base, console)
    if found.gain is not None:
        console.print(f"gain: {found.gain}", soft_wrap=True)
    for note in found.notes:
        console.print(f"note: {note}", soft_wrap=True)
    met = {True: "shown", False: "not so", None: "open"}[found.claim_met]
    reached = found.reached or "no level"
    line = rich.text.Text("reached     ", style="bold").append(
        f"{reached}, the claim is {met}", style=_STYLES[found.claim_met]
    )
    console.print(line)


def _rows(rows: tuple[LadderRow, ...], console: rich.console.Console) -> None:
    shown = [
        (
            f"{row.level} {LEVELS[row.level].title}",
            f"{row.target} {row.precision}",
            row.component or "whole",
            rich.text.Text(row.word, style=_TONES[row.word]),
            "; ".join(row.reasons),
        )
        for row in rows
    ]
    columns = [Col("level"), Col("case", "text"), Col("part", "text"), Col("word"), Col("because", "text")]
    console.print(fitted(columns, shown, console.width))


def render_batch(found: SupportBatch, console: rich.console.Console) -> None:
    rows = [
        (
            row.name,
            rich.text.Text(row.state, style=_TONES[row.state]),
            row.reached or "",
            row.ceiling,
            row.gate or "",
            row.why or "",
        )
        for row in found.rows
    ]
    columns = [Col("model", "name"), Col("state"), Col("reached"), Col("of"), Col("gate"), Col("why", "text")]
    console.print(fitted(columns, rows, console.width))


def _facts(found: SupportProbe) -> Iterator[tuple[str, str]]:
    yield "Model", found.model
    yield "Type", found.model_type
    agrees = "its head" if found.task == found.head else f"its head does {found.head or 'not say'}"
    yield "Task", f"{found.task} ({agrees})"
    if found.outline is not None:
        yield from _outlined(found, found.outline)
    if found.lacks:
        yield "Lacks", f"{' and '.join(found.lacks)}: data can only be given as arrays"


def _outlined(found: SupportProbe, outline: ExportOutline) -> Iterator[tuple[str, str]]:
    renamed = f", called {outline.class_renamed_from} in its configuration" if outline.class_renamed_from else ""
    yield "Class", outline.model_class + renamed
    yield (
        "Size",
        f"{human_count(outline.parameters)} parameters"
        + (f", {human_bytes(found.weight_bytes)} of files" if found.weight_bytes is not None else ""),
    )
    yield "Graphs", outline.pattern + (f": {', '.join(part.name for part in outline.parts)}" if outline.parts else "")
    for part in outline.parts or ():
        yield f"  {part.name}", ", ".join(f"{one.name} {'x'.join(map(str, one.sizes))}" for one in part.inputs)
    if outline.fit is not None:
        unused = outline.fit.unused
        more = f"; {len(unused)} in the file are not used, for example {unused[0]}" if unused else ""
        yield "Weights", f"{_count(outline.fit.missing)} missing{more}"


def _count(names: tuple[str, ...]) -> str:
    return "none" if not names else f"{len(names)} ({', '.join(names[:_SHOWN])}{' …' if len(names) > _SHOWN else ''})"


def _word(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "unknown"}[value]
