"""A watched suite: on a terminal, as Markdown for a pull request, as JUnit XML, and as bug reports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from modelwright._lazy import lazy
from modelwright._output import SEAL
from modelwright._text import visible
from modelwright.answers.watch import CaseHistory, WatchCase, WatchHistory, WatchResult, WatchRow
from modelwright.report._tables import Col, fitted

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")

_ASPECTS = ("runs", "accuracy", "placement", "memory", "speed")
_STYLES = {"ok": "green", "REGRESSED": "bold red", "undecided": "yellow"}
_MOST_BLAMED = 3


def render_watch(result: WatchResult, console: rich.console.Console) -> None:
    columns = [Col("case", "name"), Col("aspect"), Col("answer"), Col("why", "text")]
    rows = [
        (case.name, row.aspect, rich.text.Text(row.word, style=_STYLES[row.word]), row.sentence)
        for case in result.cases
        for row in case.rows
    ]
    console.print(fitted(columns, rows, console.width))
    blamed = (line for case in result.cases for line in blame_lines(case))
    for line in (*version_words(result), *blamed, *fix_lines(result)):
        console.print(rich.text.Text(line), soft_wrap=True)
    style = {True: "bold green", False: "bold red", None: "bold yellow"}[result.passed]
    console.print(rich.text.Text(result_words(result), style=style), soft_wrap=True)


def render_history(found: WatchHistory, console: rich.console.Console) -> None:
    columns = [Col("case", "name"), Col("runs", "number"), Col("last", "number"), Col("changes", "text")]
    rows = [
        (_title(one), str(len(one.points)), f"{one.points[-1].effect:+.1%}", change_words(one)) for one in found.cases
    ]
    console.print(fitted(columns, rows, console.width))
    if found.unread:
        console.print(rich.text.Text(f"{found.unread} lines could not be read"))


def result_words(result: WatchResult) -> str:
    sides = f"{result.suite.old} against {result.suite.new}"
    count = len(result.cases)
    if result.passed is True:
        return f"green: nothing regressed in {count} case{'s' if count > 1 else ''} ({sides})"
    word = "REGRESSED" if result.passed is False else "undecided"
    bad = [f"{case.name} ({row.aspect})" for case in result.cases for row in case.rows if row.word == word]
    return f"{word}: {', '.join(bad)} ({sides})"


def blame_lines(case: WatchCase) -> Iterator[str]:
    """What is to blame, by the traces of both sides."""
    if case.operators is not None and case.operators.reason is not None:
        yield f"{case.name}: no operator can be named: {case.operators.reason}"
    elif case.operators is not None:
        slower = [change for change in case.operators.changes if change.slower]
        if not slower and case.suspected is None:
            yield f"{case.name}: no operator is proven to take longer; {case.operators.traces} traces on each side"
        elif not slower and case.suspected is not None:
            name, share = case.suspected
            change = next(one for one in case.operators.changes if one.op_type == name)
            yield (
                f"{case.name}: most likely {name}: it has {share:.0%} of the time lost in traces "
                f"({change.difference_ms:+.3g} ms; {change.low_ms:.3g} to {change.high_ms:.3g}), which proves nothing"
            )
        for change in slower[:_MOST_BLAMED]:
            kernels = "" if change.kernels == change.base_kernels else (
                f", as {', '.join(change.kernels) or 'part of others'}"
                f" (before: {', '.join(change.base_kernels) or 'part of others'})"
            )  # fmt: skip
            yield (
                f"{case.name}: {change.op_type} takes {change.difference_ms:+.3g} ms more in traces "
                f"({change.low_ms:.3g} to {change.high_ms:.3g}; {change.base_ms:.3g} ms before){kernels}"
            )
    for moved in case.moved:
        yield f"{case.name}: moved: {moved}"


def fix_lines(result: WatchResult) -> Iterator[str]:
    """What decides what is undecided."""
    for case in result.cases:
        for row in case.rows:
            if row.fix is not None:
                yield f"next: {case.name} ({row.aspect}): {row.fix}"


def change_words(one: CaseHistory) -> str:
    if not one.changes:
        return "none proven"
    words = []
    for change in one.changes:
        before, point = one.points[change.place - 1], one.points[change.place]
        engines = f", {before.new} -> {point.new}" if before.new != point.new else f", {point.new} both times"
        words.append(f"{change.before:+.1%} -> {change.after:+.1%} at {point.made_at} (p {change.p:.3f}{engines})")
    return "; ".join(words)


def markdown(result: WatchResult) -> str:
    """For a pull request."""
    head = f"| case | {' | '.join(_ASPECTS)} |"
    lines = [f"### {_safe(result_words(result))}", "", head, "|---" * (len(_ASPECTS) + 1) + "|"]
    for case in result.cases:
        by = {str(row.aspect): row.word for row in case.rows}
        lines.append(f"| {_safe(case.name)} | {' | '.join(by.get(aspect, '-') for aspect in _ASPECTS)} |")
    lines += ["", *(f"- {_safe(line)}" for line in version_words(result)), ""]
    for case in result.cases:
        bad = [f"- **{row.aspect}** {row.word}: {_safe(_whole(row))}" for row in case.rows if row.passed is not True]
        if bad:
            lines += [f"#### {_safe(case.name)}", "", *bad, *(f"- {_safe(line)}" for line in blame_lines(case)), ""]
    return "\n".join([*lines, f"<!-- {SEAL} -->", ""])


def junit(result: WatchResult) -> str:
    """Regressions are failures, undecided ones are errors: neither is green anywhere."""
    every = [(case, row) for case in result.cases for row in case.rows]
    counts = {word: sum(row.word == word for _, row in every) for word in _STYLES}
    suite = ElementTree.Element(
        "testsuite",
        name=_xml(result.suite.name),
        tests=str(len(every)),
        failures=str(counts["REGRESSED"]),
        errors=str(counts["undecided"]),
        timestamp=result.made_at,
    )
    for case, row in every:
        _test(suite, case, row)
    text = ElementTree.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<!-- {SEAL} -->\n{text}\n'


def _test(suite: ElementTree.Element, case: WatchCase, row: WatchRow) -> None:
    test = ElementTree.SubElement(
        suite, "testcase", classname=_xml(f"{suite.get('name')}.{case.name}"), name=row.aspect
    )
    if row.passed is True:
        ElementTree.SubElement(test, "system-out").text = _xml(row.sentence)
        return
    kind = "failure" if row.passed is False else "error"
    found = ElementTree.SubElement(test, kind, message=_xml(row.sentence), type=row.word)
    found.text = _xml("\n".join([_whole(row), *blame_lines(case)]))


def _whole(row: WatchRow) -> str:
    """In a file, where the one who reads it has the suite beside it and typed no command."""
    return row.sentence if row.fix is None else f"{row.sentence}; next: {row.fix.replace('`', '')}"


def bug_reports(result: WatchResult) -> dict[str, str]:
    """File name to text: one for each case that regressed, ready to be sent."""
    bad = [case for case in result.cases if case.passed is False]
    return {f"{re.sub(r'[^A-Za-z0-9._-]+', '-', case.name)}.md": _bug(result, case) for case in bad}


def _bug(result: WatchResult, case: WatchCase) -> str:
    wrong = [row for row in case.rows if row.passed is False]
    what = ", ".join(row.aspect for row in wrong)
    return "\n".join(
        [
            f"# {_safe(case.name)}: {what} regressed with {_safe(case.new or 'the new side')}",
            "",
            f"The same model on two sides of one machine, measured in turns. Old: {case.old or 'does not run'}. "
            f"New: {case.new or 'does not run'}.",
            "",
            "## What differs",
            "",
            *(f"- **{row.aspect}**: {_safe(row.sentence)}" for row in wrong),
            *(f"- {_safe(line)}" for line in blame_lines(case)),
            "",
            "## What is the same",
            "",
            *(f"- {row.aspect}: {_safe(row.sentence)}" for row in case.rows if row.passed is True),
            *(f"- {row.aspect}: undecided: {_safe(row.sentence)}" for row in case.rows if row.passed is None),
            "",
            "## Versions that changed",
            "",
            *([f"- {_safe(line)}" for line in version_words(result)] or ["- none"]),
            "",
            "## The model",
            "",
            *(f"- {_safe(file.name)}: {file.size} bytes, sha256 {file.sha256}" for file in case.files),
            f"- target {case.target}",
            "",
            "## Again",
            "",
            "```sh",
            f"wright compare old={case.model}@runtime=OLD new={case.model} --target {case.target}",
            "```",
            "",
            f"<!-- {SEAL} -->",
            "",
        ]
    )


def version_words(result: WatchResult) -> list[str]:
    return [f"{one.package} {one.old or 'not installed'} -> {one.new or 'not installed'}" for one in result.changed]


def _title(one: CaseHistory) -> str:
    return f"{one.case} (against {one.old})"


def _safe(text: str) -> str:
    """Names from outside draw no table and no markup."""
    return re.sub(r"([|<>`*_\[\]])", r"\\\1", visible(text))


def _xml(text: str) -> str:
    return visible(text)
