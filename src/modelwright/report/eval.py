"""The answer of `wright eval`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.evaluation import EvalData, EvalResult
from modelwright.metrics import Aggregate
from modelwright.report._tables import Col, FittedTable, fitted
from modelwright.report._tones import verdict_style

if TYPE_CHECKING:
    import rich.console
    import rich.table
    import rich.text
else:
    rich = lazy("rich")

_FAILURES_SHOWN = 5


def render_eval(result: EvalResult, console: rich.console.Console) -> None:
    _head(result, console)
    if result.values is not None:
        console.print(_metrics(result, console.width))
    if result.outputs:
        _outputs(result, console)
    _failures(result, console)
    for warning in result.warnings:
        console.print(rich.text.Text(f"note: {warning}", style="yellow"), soft_wrap=True)
    if result.status != "complete":
        words = f"{result.status}: these are the {result.data.selected:,} samples until then, and nothing is judged"
        console.print(rich.text.Text(words, style="bold red"), soft_wrap=True)
        for reason in result.reasons:
            console.print(reason, soft_wrap=True)
        return
    _verdict(result, console)


def _head(result: EvalResult, console: rich.console.Console) -> None:
    for name, side in (("candidate", result.candidate), ("reference", result.reference)):
        line = rich.text.Text(f"{name}  ", style="bold")
        line.append(f"{side.model} on {side.target}, {side.engine}", style="not bold")
        console.print(line, soft_wrap=True)
    console.print(rich.text.Text.assemble(("data       ", "bold"), data_words(result.data)), soft_wrap=True)


def data_words(data: EvalData) -> str:
    """Where the samples come from, and which of them were drawn."""
    if data.selected < data.available:
        return f"{data.source}, {data.selected:,} of {data.available:,} samples, seed {data.seed}"
    return f"{data.source}, all {data.available:,} samples"


def _metrics(result: EvalResult, width: int) -> FittedTable:
    assert result.values is not None
    assert result.metric is not None
    values, found = result.values, result.comparison
    titles = ("reference", "candidate", "drop", "95 % bounds of the drop")
    columns = [Col("metric", "text"), *(Col(title, "number") for title in titles)]
    arrow = "higher" if result.metric.higher_is_better else "lower"
    known = found is not None and found.low is not None
    bounds = f"{_number(found.low)} … {_number(found.high)}" if found is not None and known else "unknown"
    first = f"{result.metric.name} ({arrow} is better)", _number(values.reference), _number(values.candidate)
    rows = [(*first, _number(values.drop), bounds)]
    rows += [(name, _number(theirs), _number(ours), "", "") for name, (ours, theirs) in values.more.items()]
    return fitted(columns, rows, width)


def _outputs(result: EvalResult, console: rich.console.Console) -> None:
    """What cannot be compared has no numbers, but a reason."""
    scored = [(output, output.scores) for output in result.outputs if output.scores is not None]
    columns = [Col("output", "name"), Col("cosine mean", "number", drop=2), Col("worst", "number")]
    columns += [Col("SQNR mean", "number", drop=3), Col("worst", "number"), Col("max abs", "number", drop=1)]
    columns += [Col("same best class", "number")]
    if scored:
        console.print(fitted(columns, [(output.output, *_scores(found)) for output, found in scored], console.width))
    for output in result.outputs:
        problem = output.problem or (output.scores.problem if output.scores is not None else "unknown")
        if problem is not None:
            words = f"{output.output}: {problem}"
            console.print(rich.text.Text(words, style="red"), soft_wrap=True)


def _scores(found: Aggregate) -> list[str]:
    if found.identical == found.samples:
        return ["identical", "identical", "-", "-", "0", "-"]
    decibels = [f"{value:.1f} dB" if value is not None else "-" for value in (found.sqnr_db.mean, found.sqnr_db.worst)]
    top = found.top1.mean
    return [
        _number(found.cosine.mean, 5),
        _number(found.cosine.worst, 5),
        *decibels,
        f"{found.max_abs.worst:.3g}" if found.max_abs.worst is not None else "-",
        f"{top:.1%}" if top is not None else "-",
    ]


def _failures(result: EvalResult, console: rich.console.Console) -> None:
    for failure in result.failures[:_FAILURES_SHOWN]:
        words = f"sample {failure.index}, {failure.side}: {failure.reason}"
        console.print(rich.text.Text(words, style="red"), soft_wrap=True)
    if len(result.failures) > _FAILURES_SHOWN:
        console.print(rich.text.Text(f"and {len(result.failures) - _FAILURES_SHOWN} more failed samples", style="red"))


def _verdict(result: EvalResult, console: rich.console.Console) -> None:
    if result.verdict is None:
        console.print(rich.text.Text(unjudged_words(result), style="dim"), soft_wrap=True)
        return
    console.print(rich.text.Text(result.verdict.value, style=verdict_style(result.verdict)))
    for reason in result.reasons:
        console.print(f"  {reason}", soft_wrap=True)


def unjudged_words(result: EvalResult) -> str:
    if result.comparison is None or result.metric is None:
        return "nothing was asked to hold (--min-cosine, --min-sqnr)"
    return "nothing was asked to hold: --max-drop 1% makes it a gate"


def _number(value: float | None, digits: int = 4) -> str:
    if value is None:
        return "failed"
    return f"{value:.{digits}f}" if abs(value) < 100 else f"{value:.1f}"
