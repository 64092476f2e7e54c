"""A search on a terminal: the champion in one sentence, and what became of every variant."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.judge import VerdictKind
from modelwright.report._tables import Col, fitted
from modelwright.report._tones import verdict_style
from modelwright.report._units import human_bytes
from modelwright.search import WHAT_COUNTS, TuneResult, TuneRow

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")

_KINDS = {kind.value: kind for kind in VerdictKind}


def render_tune(result: TuneResult, console: rich.console.Console) -> None:
    columns = [
        Col("variant", "name"),
        Col("word"),
        Col("effect", "number"),
        Col("size", "number", 1),
        Col("why", "text"),
    ]
    console.print(fitted(columns, [_row(row) for row in result.rows], console.width))
    console.print(rich.text.Text(f"champion: {result.champion}", style="bold"), soft_wrap=True)
    console.print(rich.text.Text(result.sentence, style=_style(result)), soft_wrap=True)
    _front(result, console)
    for words in lines(result):
        console.print(rich.text.Text(words, style="dim"), soft_wrap=True)
    if result.status != "complete":
        console.print(rich.text.Text(f"{result.status}: the same command goes on from here", style="bold red"))


def _front(result: TuneResult, console: rich.console.Console) -> None:
    console.print(rich.text.Text(front_words(result)), soft_wrap=True)
    shown = front_rows(result)
    if result.front.reason is None and shown:
        columns = [Col("on the front", "name"), *(Col(title, "number") for title in front_titles(result))]
        console.print(fitted(columns, [(row.label, *front_cells(row, result)) for row in shown], console.width))


def front_words(result: TuneResult) -> str:
    found = result.front
    if found.reason is not None or not found.labels:
        return f"no front: {found.reason or 'this record is older than fronts'}"
    none = "none of them is proven as good as another in everything"
    return f"a front of {len(found.labels)} by {', '.join(found.axes)}: {none}"


def front_rows(result: TuneResult) -> list[TuneRow]:
    return [row for row in result.rows if row.label in result.front.labels]


def front_titles(result: TuneResult) -> list[str]:
    names = {
        "latency": "faster by",
        "energy": "baseline takes more",
        "accuracy": "loses",
        "nodes left to the CPU": "left to CPU",
    }
    return [names.get(axis, axis) for axis in result.front.axes]


def front_cells(row: TuneRow, result: TuneResult) -> list[str]:
    """In the order of the axes; a variant of the baseline's precision answers as that does."""
    own = "precision=" not in row.label
    said = {
        "latency": "0" if row.label == "baseline" else effect_words(row),
        "energy": "0" if row.label == "baseline" else effect_words(row),
        "size": "-" if row.size is None else human_bytes(row.size),
        "memory": "-" if row.peak_bytes is None else human_bytes(row.peak_bytes),
        "accuracy": f"{row.lost:.3g}" if row.lost is not None else "0" if own else "not measured",
        "nodes left to the CPU": str(row.left_nodes),
    }
    return [said[axis] for axis in result.front.axes]


def lines(result: TuneResult) -> list[str]:
    """What one should know beside the sentence."""
    found = [f"{result.units} units, {result.spent_s:.0f} s, coins from seed {result.seed}"]
    if result.timed and result.limits.raced and any(row.effect is not None for row in result.rows):
        quoted = "no effect of it is proven" if result.champion == "baseline" else "quote the champion's alone"
        others = "effects" if result.champion == "baseline" else "effects of the others"
        found.append(f"{others} are from the screening, which only chooses: {quoted}")
        if result.limits.objective == "energy":
            found.append(f"an effect of +10.0% is a baseline that takes 10 % more energy for a run; {WHAT_COUNTS}")
    elif not result.timed:
        found.append(f"{result.target} is simulated here: speed was not measured, placement and size decided")
    if result.fits is False:
        found.append(f"the champion takes more memory than {human_bytes(result.limits.max_memory or 0)}")
    if result.latency is not None:
        kept = {True: "kept", False: "not kept", None: "not known"}[result.latency.kept]
        found.append(f"--latency is {kept}: {result.latency.reason}")
    if result.combined is not None:
        found.append(result.combined)
    if result.needed_s is not None:
        found.append(f"next: the same command with --budget {budget_words(result.needed_s)} goes on from here")
    if result.resumed:
        found.append(f"{result.resumed} steps are from an earlier call of the same search")
    if result.reproducible is False:
        found.append("the fresh build of the champion is another graph than the first one")
    if result.settings:
        said = ", ".join(f"{name}={value}" for name, value in result.settings.items())
        found.append(f"session settings to open it with: {said}")
    return found


def budget_words(seconds: float) -> str:
    """As --budget takes it."""
    return f"{math.ceil(seconds / 60)}m" if seconds > 120 else f"{math.ceil(seconds)}s"


def effect_words(row: TuneRow) -> str:
    if row.effect is None:
        return "-"
    if row.low is None or row.high is None:
        return f"{row.effect:+.1%}"
    return f"{row.effect:+.1%} ({row.low:+.1%} … {row.high:+.1%})"


def _row(row: TuneRow) -> list[str | rich.text.Text]:
    kind = _KINDS.get(row.word)
    word = rich.text.Text(row.word, style=verdict_style(kind) if kind else "dim")
    reason = "" if row.effect is not None and row.low is not None else row.reason
    return [row.label, word, effect_words(row), human_bytes(row.size) if row.size is not None else "-", reason]


def _style(result: TuneResult) -> str:
    return verdict_style(result.finding.kind) if result.finding is not None else "bold"
