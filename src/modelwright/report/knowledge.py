"""The answers of `wright kb`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.evidence import SHOWN
from modelwright.knowledge import (
    ExperimentResult,
    FindingPromotion,
    Insight,
    KbEvent,
    KbExplanation,
    LintReport,
    Observation,
    Standing,
    Verified,
)
from modelwright.report._tables import Col, fitted

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")

_STYLES = {
    "confirmed": "bold green",
    "general": "bold green",
    "adopted": "green",
    "expired": "yellow",
    "retracted": "red",
    "quarantined": "dim",
}


_ANSWERS = {
    True: ("reproduced", "bold green"),
    False: ("contradicted", "bold red"),
    None: ("cannot tell", "bold yellow"),
}


def render_findings(found: Sequence[Standing], console: rich.console.Console) -> None:
    columns = [Col("id"), Col("status"), Col("target", drop=2), Col("rung", drop=1), Col("says", "text")]
    rows = [
        (
            one.finding.id,
            _status(one),
            one.finding.target or "-",
            one.rung if one.finding.evidence else "-",
            one.finding.says,
        )
        for one in found
    ]
    if rows:
        console.print(fitted(columns, rows, console.width))
    counts = {word: sum(one.status == word for one in found) for word in dict.fromkeys(one.status for one in found)}
    said = ", ".join(f"{count} {word}" for word, count in counts.items())
    console.print(f"{len(found)} finding{'' if len(found) == 1 else 's'}{': ' if said else ''}{said}", soft_wrap=True)


def render_finding(one: Standing, events: Sequence[KbEvent], console: rich.console.Console) -> None:
    finding = one.finding
    console.print(rich.text.Text.assemble((finding.id, "bold"), f"  {finding.kind}  ", _status(one)), soft_wrap=True)
    for title, words in _lines(one):
        console.print(rich.text.Text.assemble((f"{title}: ", "dim"), words), soft_wrap=True)
    if one.agreeing or one.contradicting:
        console.print(_observed(one, console.width))
    for event in events:
        what = event.status or (f"record {event.record[:SHOWN]}" if event.record else "draft")
        words = f"{event.at[:10]} {event.event}: {what}{f' by {event.by}' if event.by else ''}"
        console.print(rich.text.Text(words, style="dim"), soft_wrap=True)


def _lines(one: Standing) -> list[tuple[str, str]]:
    finding, scope = one.finding, one.scope
    found = [("says", finding.says), ("why this status", one.why)]
    if finding.audit is not None:
        found.append(("audit", f"{finding.audit}, by the data of those who published it"))
    if finding.change:
        found.append(("change", f"{finding.change} on {finding.target}, expected to be {finding.expects or 'unknown'}"))
    if finding.foreign:
        found.append(("change", f"{', '.join(finding.foreign)} (not a change that this tool can make)"))
    for item in finding.published:
        number = f"{item.before:g} ms before, {item.after:g} ms after, log-ratio {item.log_ratio:+.2f}, no interval"
        found.append(("published", f"{item.model}: {number}"))
    if finding.mechanism is not None:
        shown = ", ".join(name[:SHOWN] for name in finding.mechanism.evidence)
        found.append(("mechanism", f"{finding.mechanism.says} ({f'shown by {shown}' if shown else 'not shown'})"))
    if one.agreeing:
        versions = ", ".join(f"{name} {' and '.join(seen)}" for name, seen in scope.versions.items())
        found.append(("scope", f"{', '.join(scope.families)} on {', '.join(scope.targets)}; {versions}"))
        found.append(("rung", f"{one.rung}, {len(scope.models)} models, {len(scope.families)} classes"))
    if finding.family is not None:
        found.append(("family", finding.family))
    found += [("held by", test) for test in finding.tests]
    for name in one.missing:
        found.append(("missing", f"record {name[:SHOWN]}"))
    return [*found, ("origin", finding.origin)]


def _observed(one: Standing, width: int) -> rich.console.RenderableType:
    columns = [Col("record"), Col("model", "name"), Col("class", "text", drop=1), Col("says", "text")]
    rows = [(seen.record[:SHOWN], seen.model, seen.family or "-", observation_words(seen)) for seen in one.agreeing]
    rows += [
        (seen.record[:SHOWN], seen.model, seen.family or "-", f"against it: {observation_words(seen)}")
        for seen in one.contradicting
    ]
    return fitted(columns, rows, width)


def observation_words(seen: Observation) -> str:
    """What one record observed, in numbers."""
    if seen.left is not None:
        before, after = seen.left
        return f"{before} nodes left to the CPU before, {after} after; {seen.builds} builds of each"
    if seen.effect is None:
        return seen.word
    interval = "" if seen.low is None or seen.high is None else f" ({seen.low:+.3f} … {seen.high:+.3f})"
    times = math.exp(abs(seen.effect))
    way = "faster" if seen.effect > 0 else "slower"
    return f"{seen.word}: log-ratio {seen.effect:+.3f}{interval}, {times:.2f} times {way}; {seen.units} units"


def render_lint(report: LintReport, console: rich.console.Console) -> None:
    for problem in report.problems:
        console.print(rich.text.Text.assemble((problem.finding, "red"), f": {problem.problem}"), soft_wrap=True)
    checked = f"{report.findings} findings, {report.records} records read again"
    console.print(f"{checked}: {'all good' if report.clean else f'{len(report.problems)} problems'}", soft_wrap=True)


def render_experiment(found: ExperimentResult, console: rich.console.Console) -> None:
    said = {True: "as the finding says", False: "against the finding", None: "undecided"}[found.agrees]
    words = (f"{found.model}", "bold"), f"  {found.change} on {found.target}: {found.word}, {said}"
    console.print(rich.text.Text.assemble(*words), soft_wrap=True)
    console.print(rich.text.Text(found.reason, style="dim"), soft_wrap=True)


def render_verified(found: Verified, console: rich.console.Console) -> None:
    for one in found.experiments:
        render_experiment(one, console)
    word, style = _ANSWERS[found.reproduced]
    console.print(rich.text.Text.assemble((word, style), f": {found.reason}"), soft_wrap=True)
    if found.next is not None:
        console.print(f"next: {found.next}", soft_wrap=True)


def render_promotion(found: FindingPromotion, console: rich.console.Console) -> None:
    for item in found.checklist:
        mark = ("yes", "green") if item.holds else ("no", "bold red")
        console.print(rich.text.Text.assemble(mark, f"  {item.what}: {item.detail}"), soft_wrap=True)
    said = f"{found.finding} is {found.to} now, by {found.by}" if found.done else f"{found.finding} stays as it is"
    console.print(rich.text.Text(said, style="bold"), soft_wrap=True)


def render_explanation(found: KbExplanation, console: rich.console.Console) -> None:
    console.print(f"{found.model} on {found.target}: {found.family}", soft_wrap=True)
    render_insights(found.insights, console)


def render_insights(insights: Sequence[Insight], console: rich.console.Console) -> None:
    """Which rule did what to which change, and why."""
    if not insights:
        console.print("nothing is known about any change of it")
        return
    columns = [Col("change", "name"), Col("did"), Col("finding", "name"), Col("why", "text")]
    rows = [(one.change, insight_word(one), one.finding or "-", one.why) for one in insights]
    console.print(fitted(columns, rows, console.width))


def insight_word(one: Insight) -> str:
    """What was done: a finding that is not in force is not used, and where nothing speaks the change is just tried."""
    if one.did == "none":
        return "tried" if one.finding is None else "not used"
    return {"absent": "not tried", "earlier": "tried earlier", "later": "tried later"}.get(one.did, one.did)


def _status(one: Standing) -> rich.text.Text:
    word = f"{one.status}{'?' if one.contradicting and one.steers else ''}"
    return rich.text.Text(word, style=_STYLES.get(one.status, ""))
