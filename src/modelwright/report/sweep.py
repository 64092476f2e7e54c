"""Many searches on a terminal: one line each, and what to take for several targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.report._tables import Col, fitted
from modelwright.search import FallbackStep, Portfolio, PortfolioRow, SweepRow, TuneSweep

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")


def render_sweep(result: TuneSweep, console: rich.console.Console) -> None:
    columns = [Col("model", "name"), Col("target", "name"), Col("champion", "name"), Col("says", "text")]
    rows = [(row.name, row.target, row.result.champion if row.result else "-", row_words(row)) for row in result.rows]
    console.print(fitted(columns, rows, console.width))
    console.print(rich.text.Text(summary_words(result), style="bold"), soft_wrap=True)
    for portfolio in result.portfolios:
        _portfolio(portfolio, console)


def row_words(row: SweepRow) -> str:
    if row.failure is not None:
        return f"no answer: {row.failure.problem}: {row.failure.cause}"
    said = row.result.sentence if row.result is not None else ""
    return "; ".join(filter(None, (said, row.note, None if row.fresh else "from an earlier search")))


def summary_words(result: TuneSweep) -> str:
    before = sum(not row.fresh for row in result.rows)
    parts = [f"{len(result.rows)} searches", f"{before} of them answered before"]
    if result.failed:
        parts.append(f"{result.failed} without an answer")
    if result.asked > len(result.rows):
        parts.append(f"{result.asked - len(result.rows)} not begun or not ended")
    return f"{', '.join(parts)}, {result.spent_s:.0f} s"


def effect_of(row: PortfolioRow, place: int) -> str:
    effect = row.effects[place]
    return "-" if effect is None else f"{effect:+.1%}"


def step_words(step: FallbackStep) -> str:
    """What to take there."""
    if step.same_file:
        return "the same file runs"
    return f"take {step.take}'s champion" if step.take is not None else "nothing runs"


def _portfolio(portfolio: Portfolio, console: rich.console.Console) -> None:
    console.print(rich.text.Text(f"{portfolio.model} for all of {', '.join(portfolio.targets)}", style="bold"))
    console.print(rich.text.Text(f"one recipe for all: {portfolio.reason}"), soft_wrap=True)
    if portfolio.rows:
        columns = [Col("recipe", "name"), *(Col(name, "number") for name in portfolio.targets), Col("", "text")]
        rows = [
            (row.label, *(effect_of(row, place) for place in range(len(row.effects))), _remark(row))
            for row in portfolio.rows
        ]
        console.print(fitted(columns, rows, console.width))
    columns = [Col("champion of", "name"), Col("can go"), Col("why", "text")]
    console.print(fitted(columns, [(one.target, one.word, one.reason) for one in portfolio.artifacts], console.width))
    columns = [Col("without", "text"), Col("next", "name"), Col("then", "text"), Col("why", "text")]
    steps = [(", ".join(one.missing) or "-", one.target, step_words(one), one.reason) for one in portfolio.chain]
    if steps:
        console.print(fitted(columns, steps, console.width))


def _remark(row: PortfolioRow) -> str:
    return f"out: {row.why}" if row.why is not None else "on the front" if row.front else ""
