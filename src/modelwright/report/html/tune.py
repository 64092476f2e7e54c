"""The page of `wright tune`: the champion, the interval of every variant, and why the others are out."""

from __future__ import annotations

from modelwright.judge import VerdictKind
from modelwright.report._units import human_bytes
from modelwright.report.html._kit import Cell, Column, Interval, Row, Shade, intervals, paragraph, table
from modelwright.report.html._page import NextStep, Note, Page, Section
from modelwright.report.html._words import command, shade
from modelwright.report.knowledge import insight_word
from modelwright.report.perf import machine_words
from modelwright.report.tune import (
    budget_words,
    effect_words,
    front_cells,
    front_rows,
    front_titles,
    front_words,
    lines,
)
from modelwright.search import TuneResult, TuneRow

_KINDS = {kind.value: kind for kind in VerdictKind}


def tune_page(result: TuneResult) -> Page:
    measured = [row for row in result.rows if row.effect is not None]
    return Page(
        kind=f"search for {result.target}",
        title=result.model,
        verdict=(result.sentence, shade(result.finding.kind) if result.finding is not None else ""),
        facts=(
            ("champion", result.champion),
            ("took", f"{result.spent_s:.0f} s, {result.units} units"),
            ("machine", machine_words(result.environment)),
            ("libraries", ", ".join(f"{name} {version}" for name, version in result.environment.packages.items())),
        ),
        notes=tuple(Note(words, "") for words in lines(result)[1:]),
        sections=(
            *_effects(result, measured),
            _front(result),
            _variants(result),
            *_graph(result),
            *_insights(result),
            *_timeline(result),
        ),
        next_steps=_steps(result),
    )


def _effects(result: TuneResult, measured: list[TuneRow]) -> tuple[Section, ...]:
    if not measured:
        return ()
    effect = result.limits.min_effect
    rows = [Interval(row.label, effect_words(row), row.low, row.effect, row.high, _tone(row)) for row in measured]
    energy = result.limits.objective == "energy"
    title, right = ("How much less energy", "takes less") if energy else ("How much faster", "is faster")
    hint = f"than the baseline; grey is ±{100 * effect:g} %, which does not matter; right {right}"
    return (Section(title, intervals(rows, band=(-effect, effect)), hint),)


def _front(result: TuneResult) -> Section:
    if result.front.reason is not None or not result.front.labels:
        return Section("Front", paragraph(front_words(result)))
    columns = [Column("variant", long=True), *(Column(title) for title in front_titles(result))]
    rows = [Row((Cell(row.label), *map(Cell, front_cells(row, result)))) for row in front_rows(result)]
    return Section("Front", table(columns, rows), front_words(result))


def _graph(result: TuneResult) -> tuple[Section, ...]:
    """Of the champion beside the baseline."""
    if result.champion == "baseline":
        return ()
    if not result.graph:
        return (Section("Graph", paragraph(f"{result.champion} has as many of each operator as the baseline.")),)
    columns = [Column("operator", long=True), Column("baseline", True), Column("champion", True)]
    rows = [Row((Cell(name), *(Cell(str(count), count) for count in pair))) for name, pair in result.graph.items()]
    return (Section("Graph", table(columns, rows), "operators of which the two do not have as many"),)


def _timeline(result: TuneResult) -> tuple[Section, ...]:
    if not result.timeline:
        return ()
    columns = [Column("from", True), Column("what", long=True), Column("how many", True), Column("took", True)]
    rows = [
        Row(
            (
                Cell(f"{step.at_s:.1f} s", step.at_s),
                Cell(step.what),
                Cell(str(step.count), step.count),
                Cell(f"{step.seconds:.1f} s", step.seconds),
            )
        )
        for step in result.timeline
    ]
    return (Section("What the time was spent on", table(columns, rows), "with what earlier calls of it spent"),)


def _variants(result: TuneResult) -> Section:
    placed = any(row.left_nodes is not None for row in result.rows)
    columns = [Column("variant", long=True), Column("word"), Column("effect"), Column("size", True)]
    columns += [Column("left to the CPU", True)] if placed else []
    rows = [
        Row(
            (
                Cell(row.label, small=row.reason),
                Cell(row.word, tone=_tone(row)),
                Cell(effect_words(row), row.effect),
                Cell(human_bytes(row.size) if row.size is not None else "–", row.size),
                *([Cell("–" if row.left_nodes is None else str(row.left_nodes), row.left_nodes)] if placed else []),
            )
        )
        for row in result.rows
    ]
    return Section("Variants", table(columns, rows), "what is the same, fails or falls back is out before it is timed")


def _insights(result: TuneResult) -> tuple[Section, ...]:
    if not result.insights:
        return ()
    columns = [Column("change", long=True), Column("did"), Column("finding")]
    rows = [
        Row((Cell(one.change, small=one.why), Cell(insight_word(one)), Cell(one.finding or "–")))
        for one in result.insights
    ]
    hint = "why a change was tried first, last or not at all; how a graph looks sets the order and leaves nothing out"
    return (Section("What was known", table(columns, rows), hint),)


def _tone(row: TuneRow) -> Shade:
    kind = _KINDS.get(row.word)
    return shade(kind) if kind is not None else ""


def _steps(result: TuneResult) -> tuple[NextStep, ...]:
    """Only of a command that is known: without one of its words it would be another search. The last word counts."""
    if result.folder is not None:
        settings = ",".join(f"{name}={value}" for name, value in result.settings.items())
        arm = f"{result.folder}@{settings}" if settings else result.folder
        return (NextStep("Check it against the model as it came.", command("compare", result.model, f"best={arm}")),)
    if result.call[:1] != ("tune",) or any(word.startswith("--catalog") for word in result.call):
        return ()
    if result.needed_s is not None:
        longer = command(*result.call, "--budget", budget_words(result.needed_s))
        return (NextStep("Go on from here: the budget ended it.", longer),)
    return (NextStep("Write the champion.", command(*result.call, "-o", "best")),)
