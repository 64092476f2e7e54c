"""The answer of `wright compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.measure import (
    Against,
    ArmResult,
    CompareResult,
    OperatorChange,
    OperatorChanges,
    TypicalTime,
    quantile_name,
)
from modelwright.report._tables import Col, FittedTable, fitted
from modelwright.report._tones import verdict_style
from modelwright.report.perf import milliseconds
from modelwright.report.show import when

if TYPE_CHECKING:
    import rich.console
    import rich.table
    import rich.text
else:
    rich = lazy("rich")


def render_compare(result: CompareResult, console: rich.console.Console) -> None:
    shared, _ = setting_columns(result)
    if shared:
        console.print(rich.text.Text(f"all arms: {', '.join(shared)}", style="dim"), soft_wrap=True)
    console.print(_table(result, console.width))
    for arm in result.arms:
        if arm.verdict is not None:
            console.print(rich.text.Text(arm.sentence, style=verdict_style(arm.verdict.kind)), soft_wrap=True)
            for line in (*_next_steps(arm), *gate_words(arm, result)):
                console.print(rich.text.Text(f"  {line}", style="dim"), soft_wrap=True)
            _operators(arm, result.base, console)
    for warning in result.warnings:
        console.print(rich.text.Text(f"warning: {warning}", style="yellow"), soft_wrap=True)
    if result.units:
        console.print(rich.text.Text(protocol_words(result), style="dim"), soft_wrap=True)
    if result.against is not None:
        _against(result.against, console)
    if result.status != "complete":
        console.print(rich.text.Text(f"{result.status}: this is what was measured until then", style="bold red"))


def _operators(arm: ArmResult, base: str, console: rich.console.Console) -> None:
    if arm.operators is None:
        return
    if arm.operators.reason is not None:
        console.print(rich.text.Text(f"  by operator: {arm.operators.reason}", style="dim"), soft_wrap=True)
        return
    console.print(rich.text.Text(operators_title(arm.operators, arm.name, base), style="bold"), soft_wrap=True)
    for row in arm.operators.changes:
        if row.slower or row.faster:
            style = "red" if row.slower else "green"
            console.print(rich.text.Text(f"  {change_words(row)}", style=style), soft_wrap=True)
    open_types = [row.op_type for row in arm.operators.changes if not row.slower and not row.faster]
    if open_types:
        console.print(rich.text.Text(f"  not told apart: {', '.join(open_types)}", style="dim"), soft_wrap=True)


def operators_title(found: OperatorChanges, arm: str, base: str) -> str:
    how = f"{found.traces} traces of {found.runs} runs each, which are slower than untraced ones"
    return f"{arm} against {base}, by operator ({how}):"


def change_words(row: OperatorChange) -> str:
    """`12 Sigmoid +0.80 ms (+0.71 to +0.92): run in float with 24 conversions around them (0.5 ms)`."""
    count = f"{row.nodes or row.base_nodes} " if row.nodes or row.base_nodes else ""
    span = f"{row.low_ms:+.2g} to {row.high_ms:+.2g}"
    return f"{count}{row.op_type} {row.difference_ms:+.2g} ms ({span}): {row.why}"


def _against(found: Against, console: rich.console.Console) -> None:
    """The earlier time and this one, what differs, and what that does not prove."""
    columns = [Col("when"), Col("model", "name"), Col("typical run", "text"), Col("sessions", "number")]
    rows = [
        (moment, Path(time.model).name, _typical(time), str(time.sessions))
        for moment, times in ((when(found.then_at), found.then), ("now", found.now))
        for time in times
    ]
    console.print(fitted(columns, rows, console.width))
    for change in found.changed:
        line = rich.text.Text(f"changed: {change.what}: {change.then} → {change.now}", style="yellow")
        console.print(line, soft_wrap=True)
    if found.same:
        console.print(rich.text.Text(f"the same: {', '.join(found.same)}", style="dim"), soft_wrap=True)
    for sentence in found.says:
        console.print(rich.text.Text(sentence, style="bold"), soft_wrap=True)
    console.print(rich.text.Text(f"next: {found.next}"), soft_wrap=True)


def _typical(time: TypicalTime) -> str:
    if time.low_ms is None or time.high_ms is None:
        return f"{milliseconds(time.p50_ms)} (one session)"
    return f"{milliseconds(time.p50_ms)} ({milliseconds(time.low_ms)} to {milliseconds(time.high_ms)})"


def _table(result: CompareResult, width: int) -> FittedTable:
    """What differs between the arms is a column; what all share stands above."""
    _, own = setting_columns(result)
    times = [Col(quantile_name(quantile), "number") for quantile in result.options.by]
    columns = [
        Col("arm", "name"),
        Col("verdict"),
        *times,
        *(Col(title, "text") for title in own),
        Col("answers", "text"),
    ]
    return fitted(columns, [_row(result, place, own) for place in range(len(result.arms))], width)


def _row(result: CompareResult, place: int, own: dict[str, list[str]]) -> list[str | rich.text.Text]:
    arm = result.arms[place]
    kind = arm.verdict.kind if arm.verdict else None
    word = rich.text.Text(kind.value if kind else "base", style=verdict_style(kind) if kind else "dim")
    times = [milliseconds(time) if time is not None else "-" for time in arm.times_ms]
    return [arm.name, word, *times, *(values[place] for values in own.values()), answers_words(arm)]


def setting_columns(result: CompareResult) -> tuple[list[str], dict[str, list[str]]]:
    """What all arms share, in words, and what differs, by title with a value for each arm."""
    settings = {
        "precision": [arm.precision or "unknown" for arm in result.arms],
        "target": [arm.target for arm in result.arms],
        "threads": [str(arm.facts.threads) if arm.facts else "not opened" for arm in result.arms],
        "onnxruntime": [_runtime(arm) for arm in result.arms],
    }
    shared = [f"{title} {values[0]}" for title, values in settings.items() if len(set(values)) == 1]
    return shared, {title: values for title, values in settings.items() if len(set(values)) > 1}


def _runtime(arm: ArmResult) -> str:
    if arm.facts is None:
        return "not opened"
    return f"{arm.facts.onnxruntime} ({arm.runtime})" if arm.runtime else arm.facts.onnxruntime


def answers_words(arm: ArmResult) -> str:
    found = arm.outputs
    if found is None:
        return "-"
    if found.different is not None:
        return "next to nothing" if found.nothing else "differ"
    cosine = f"cosine {found.cosine:.5f}" if found.cosine is not None else None
    equal = f"{found.equal:.1%} equal" if found.equal is not None else None
    return ", ".join(words for words in (cosine, equal) if words)


def _next_steps(arm: ArmResult) -> list[str]:
    found = arm.forecast
    if found is None or arm.settled_after_s is None:
        return []
    return [
        f"noise is {found.noise:.1%} per unit; {found.reason}; "
        f"about {found.units_to_equate} units (--budget {arm.settled_after_s:.0f}) settle ±{100 * found.min_effect:g} %"
    ]


def gate_words(arm: ArmResult, result: CompareResult) -> list[str]:
    margin = result.options.max_slowdown
    if margin is None:
        return []
    limit = f"more than {100 * margin:g} % slower"
    if arm.within is None:
        return [f"gate: cannot tell whether {arm.name} is {limit}"]
    return [f"gate: {arm.name} is proven {'not ' if arm.within else ''}to be {limit}"]


def protocol_words(result: CompareResult) -> str:
    units = f"{len(result.units)} unit{'s' * (len(result.units) != 1)}"
    sentinel = f"{result.sentinel_units} A/A sentinel units"
    if result.sentinel_noise is not None and result.sentinel_units > 3:
        sentinel += f" (noise {result.sentinel_noise:.1%})"
    load = result.environment.foreign_load.value
    foreign = "unknown" if load is None else f"{load:.1f} CPUs"
    fresh = "processes" if result.fresh_processes else "sessions"
    seeds = ", ".join(map(str, result.seeds))
    return (
        f"{units} of fresh {fresh}, {sentinel}, foreign load {foreign}, coins from seed {seeds}; "
        "an effect at the moment of its proof leans outward: quote the interval"
    )
