"""The report of a contribution as Markdown: the text of its pull request. Nothing in it is typed by anybody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modelwright._json import dumps
from modelwright._output import SEAL, sealed
from modelwright._text import visible
from modelwright.support import LEVELS, LadderRow, SupportReport

_ITEMS = 9


def markdown(report: SupportReport) -> str:
    """The same for the same records, to the byte."""
    parts = [f"# {_text(report.name)}: {report.state}, {report.reached or 'no level'} of {report.claim.ceiling}", ""]
    parts += [_summary(report), ""]
    for number, (title, lines) in enumerate(_items(report), 1):
        parts += [f"## {number}. {title}", "", *lines, ""]
    for title, lines in (("Baseline and difference", _gate(report)), ("Commands", _commands(report))):
        parts += [f"## {title}", "", *lines, ""]
    return "\n".join(parts) + f"<!-- {SEAL} -->\n"


def rendered(report: SupportReport) -> bytes:
    """The bytes of the file."""
    return sealed(markdown(report))


def _summary(report: SupportReport) -> str:
    claim = report.claim
    cases = ", ".join(str(case) for case in claim.cases)
    return (
        f"{_text(claim.source.name)} for {cases}; claim `{report.claim_digest[:12]}`, {len(report.attempts)} records."
    )


def _items(report: SupportReport) -> Iterator[tuple[str, list[str]]]:
    claim = report.claim
    yield "Recipe", _recipe(report)
    yield "Index", _table(("entry", "target", "precision", "level"), _index(report))
    rows = [(file.target, file.precision, f"{_code(file.name)}", f"`{file.sha256[:16]}`") for file in report.files]
    yield "Files", _table(("target", "precision", "file", "sha256"), rows) if rows else ["nothing was built"]
    made = [*(f"- {_text(tool)}" for tool in report.tools), *_libraries(report)]
    yield "Records", [*_table(("record", "asked", "attempt", "word", "exit", "log", "s"), _attempts(report)), "", *made]
    yield "Findings", [f"- {_text(one)}" for one in report.findings] or ["None are about its family."]
    yield "Source, and what the tool makes of it", _source(report)
    effort = [("effort", claim.effort), ("ceiling", claim.ceiling), ("outcome", claim.outcome)]
    yield "Claim", _table(("axis", "claimed"), effort)
    yield "Ladder", _ladder(report.rows)
    yield "Friction", [f"- {_text(one)}" for one in report.friction] or ["None was detected."]


def _recipe(report: SupportReport) -> list[str]:
    if report.claim.recipe is None:
        lines = ["No recipe: the tool does it by itself."]
    else:
        name, digest = report.claim.recipe.name, report.claim.recipe.digest
        lines = [f"{_code(name)}, sha256 `{digest[:16]}`", "", "```json", _text_lines(dumps(report.recipe)), "```"]
    allowed = [f"- {_code(name)}" for name in report.allowed]
    return [*lines, "", f"Effort `{report.claim.effort}` allows these files, and no others:", "", *allowed]


def _index(report: SupportReport) -> list[tuple[str, ...]]:
    return [
        (_text(report.name), case.target, case.precision, _reached(report.rows, case.target, case.precision))
        for case in report.claim.cases
    ]


def _reached(rows: Sequence[LadderRow], target: str, precision: str) -> str:
    found = "none"
    for level in LEVELS:
        mine = [row for row in rows if (row.level, row.target, row.precision) == (level, target, precision)]
        if not mine or any(row.word != "pass" for row in mine):
            break
        found = level
    return found


def _attempts(report: SupportReport) -> list[tuple[str, ...]]:
    return [
        (
            f"`{one.statement[:12]}`",
            _text(one.asked),
            str(one.attempt) + (f" ({_text(one.change)})" if one.change else ""),
            _text(one.word),
            str(one.exit),
            f"`{one.log[:12]}`" if one.log else "-",
            f"{one.seconds:.1f}",
        )
        for one in report.attempts
    ]


def _libraries(report: SupportReport) -> list[str]:
    return [f"- {_text(name)} {_text(version)}" for name, version in report.libraries.items()]


def _source(report: SupportReport) -> list[str]:
    source, data = report.claim.source, report.claim.data
    lines = [f"- {_code(source.name)}, digest {_code(source.digest)}"]
    lines += [f"- task {_text(source.task)}"] if source.task else []
    lines += ["- seeded random weights"] if source.random_weights else []
    if data is not None:
        lines.append(f"- data {_code(data.asked.source)}, digest {_code(str(data.digest))}")
    if report.resolved is None:
        return [*lines, "- it came to no recipe that could be built"]
    shown = {key: value for key, value in report.resolved.items() if value is not None and key != "seal"}
    return [*lines, "", "```json", _text_lines(dumps(shown)), "```"]


def _ladder(rows: Sequence[LadderRow]) -> list[str]:
    head = ("level", "target", "precision", "component", "word", "why", "rule", "records")
    cells = [
        (
            f"{row.level} {LEVELS[row.level].title}",
            row.target,
            row.precision,
            row.component or "whole",
            f"{row.word} ({row.blocked_by})" if row.blocked_by else row.word,
            _text("; ".join(row.reasons)) or "-",
            row.by,
            " ".join(f"`{name[:12]}`" for name in row.statements) or "-",
        )
        for row in rows
    ]
    return _table(head, cells)


def _gate(report: SupportReport) -> list[str]:
    if report.gate is None:
        return ["The gate was not asked."]
    gate = report.gate
    lines = [f"`{gate.word}` ({gate.by}): {_text('; '.join(gate.reasons))}", ""]
    head = ("arm", "builds", "graphs", "fails below", "failure")
    cells = [
        (one.name, f"{one.works} of {one.runs}", str(one.graphs), f"{one.fails_below:.0%}", _text(one.failure or "-"))
        for one in gate.arms
    ]
    lines += _table(head, cells)
    lines += ["", f"Differs in: {_text(', '.join(gate.differs)) or 'nothing'}."]
    lines += [f"Inert: {_text(', '.join(gate.inert))}."] if gate.inert else []
    lines += [f"Gain: {_text(report.gain)}."] if report.gain else []
    return [*lines, "", "Without the contribution:", "", *_ladder(report.base)] if report.base else lines


def _commands(report: SupportReport) -> list[str]:
    return ["```sh", *(_text(line) for line in report.commands), f"wright support review {_text(report.name)}", "```"]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ("---",) * len(head), *rows)]


def _text(text: str) -> str:
    """Whatever a model or a file is called: one line, and no mark-up of its own."""
    return "".join(f"\\{letter}" if letter in "\\`*[]<>|#" else letter for letter in visible(text))


def _code(text: str) -> str:
    """The same between back-ticks, in a table or not."""
    return f"`{visible(text).replace('`', chr(39)).replace('|', '/')}`"


def _text_lines(text: str) -> str:
    return "\n".join(visible(line) for line in text.split("\n")).replace("```", "'''")
