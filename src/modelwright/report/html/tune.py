"""The page of `wright tune`: the champion, the interval of every variant, and why the others are out."""

from __future__ import annotations

from modelwright.judge import VerdictKind
from modelwright.report._units import human_bytes
from modelwright.report.html._kit import Cell, Column, Interval, Row, Shade, intervals, table
from modelwright.report.html._page import NextStep, Note, Page, Section
from modelwright.report.html._words import command, shade
from modelwright.report.knowledge import insight_word
from modelwright.report.tune import budget_words, effect_words, lines
from modelwright.search import TuneResult, TuneRow

_KINDS = {kind.value: kind for kind in VerdictKind}


def tune_page(result: TuneResult) -> Page:
    measured = [row for row in result.rows if row.effect is not None]
    return Page(
        kind=f"search for {result.target}",
        title=result.model,
        verdict=(result.sentence, shade(result.finding.kind) if result.finding is not None else ""),
        facts=(("champion", result.champion), ("took", f"{result.spent_s:.0f} s, {result.units} units")),
        notes=tuple(Note(words, "") for words in lines(result)[1:]),
        sections=(*_effects(result, measured), _variants(result), *_insights(result)),
        next_steps=_steps(result),
    )


def _effects(result: TuneResult, measured: list[TuneRow]) -> tuple[Section, ...]:
    if not measured:
        return ()
    effect = result.limits.min_effect
    rows = [Interval(row.label, effect_words(row), row.low, row.effect, row.high, _tone(row)) for row in measured]
    hint = f"than the baseline; grey is ±{100 * effect:g} %, which does not matter; right is faster"
    return (Section("How much faster", intervals(rows, band=(-effect, effect)), hint),)


def _variants(result: TuneResult) -> Section:
    columns = [Column("variant", long=True), Column("word"), Column("effect"), Column("size", True), Column("why")]
    rows = [
        Row(
            (
                Cell(row.label),
                Cell(row.word, tone=_tone(row)),
                Cell(effect_words(row), row.effect),
                Cell(human_bytes(row.size) if row.size is not None else "–", row.size),
                Cell(row.reason),
            )
        )
        for row in result.rows
    ]
    return Section("Variants", table(columns, rows), "what is the same, fails or falls back is out before it is timed")


def _insights(result: TuneResult) -> tuple[Section, ...]:
    if not result.insights:
        return ()
    columns = [Column("change", long=True), Column("did"), Column("finding"), Column("why")]
    rows = [
        Row((Cell(one.change), Cell(insight_word(one)), Cell(one.finding or "–"), Cell(one.why)))
        for one in result.insights
    ]
    hint = "why a change was tried first, last or not at all; how a graph looks sets the order and leaves nothing out"
    return (Section("What was known", table(columns, rows), hint),)


def _tone(row: TuneRow) -> Shade:
    kind = _KINDS.get(row.word)
    return shade(kind) if kind is not None else ""


def _steps(result: TuneResult) -> tuple[NextStep, ...]:
    if result.needed_s is not None:
        longer = command("tune", result.model, "--target", result.target, "--budget", budget_words(result.needed_s))
        return (NextStep("Go on from here: the budget ended it.", longer),)
    if result.folder is None:
        return (
            NextStep("Write the champion.", command("tune", result.model, "--target", result.target, "-o", "best")),
        )
    settings = ",".join(f"{name}={value}" for name, value in result.settings.items())
    arm = f"{result.folder}@{settings}" if settings else result.folder
    return (NextStep("Check it against the model as it came.", command("compare", result.model, f"best={arm}")),)
