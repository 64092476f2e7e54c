"""The page of `wright compare`: what is proven about each arm, its interval, and every unit behind it."""

from __future__ import annotations

from modelwright.judge import Verdict
from modelwright.measure import ArmResult, CompareResult, quantile_name
from modelwright.report.compare import answers_words, gate_words, operators_title, protocol_words, setting_columns
from modelwright.report.html._kit import (
    Cell,
    Chart,
    Column,
    Html,
    Interval,
    Row,
    Series,
    Shade,
    chart,
    colour,
    intervals,
    join,
    table,
    text,
)
from modelwright.report.html._page import NextStep, Note, Page, Section
from modelwright.report.html._words import command, shade
from modelwright.report.perf import milliseconds


def compare_page(result: CompareResult) -> Page:
    rivals = [arm for arm in result.arms if arm.verdict is not None]
    sections = [_arms(result), *_effects(result, rivals)]
    if any(unit.arm is not None for unit in result.units):
        sections.append(_units(result, rivals))
    sections += [_operators(arm, result.base) for arm in rivals if arm.operators is not None and arm.operators.changes]
    return Page(
        kind=f"comparison of speed, base {result.base}",
        title=" ".join(result.arms_as_written),
        verdict=_verdict(result, rivals),
        facts=_facts(result),
        notes=tuple(map(Note, (*result.warnings, *_gates(result, rivals)))),
        sections=tuple(sections),
        next_steps=_steps(result, rivals),
    )


def _operators(arm: ArmResult, base: str) -> Section:
    assert arm.operators is not None
    columns = [Column("operator", long=True), Column("nodes", True), Column(f"{base} ms", True)]
    columns += [Column(f"{arm.name} ms", True), Column("difference ms", True), Column("why", long=True)]
    rows = [
        Row(
            (
                Cell(row.op_type),
                Cell(str(row.nodes or row.base_nodes or ""), row.nodes or row.base_nodes),
                Cell(f"{row.base_ms:.3g}", row.base_ms),
                Cell(f"{row.arm_ms:.3g}", row.arm_ms),
                Cell(f"{row.difference_ms:+.2g}", row.difference_ms, small=f"{row.low_ms:+.2g} to {row.high_ms:+.2g}"),
                Cell(row.why if row.slower or row.faster else "not told apart"),
            )
        )
        for row in arm.operators.changes
    ]
    return Section(f"{arm.name} by operator", table(columns, rows), operators_title(arm.operators, arm.name, base))


def _verdict(result: CompareResult, rivals: list[ArmResult]) -> tuple[str, Shade]:
    if result.status != "complete":
        return f"{result.status}: this is what was measured until then", "bad"
    kinds = {arm.verdict.kind for arm in rivals if arm.verdict is not None}
    return "; ".join(arm.sentence for arm in rivals), shade(kinds.pop()) if len(kinds) == 1 else ""


def _facts(result: CompareResult) -> tuple[tuple[str, str], ...]:
    shared, _ = setting_columns(result)
    asked = f"±{100 * result.options.min_effect:g} % at {100 * (1 - result.options.alpha):g} % confidence"
    facts = [("all arms", ", ".join(shared))] if shared else []
    return (*facts, ("asked about", asked), ("measured", protocol_words(result)), ("took", f"{result.total_s:.0f} s"))


def _gates(result: CompareResult, rivals: list[ArmResult]) -> list[str]:
    return [words for arm in rivals for words in gate_words(arm, result)]


def _arms(result: CompareResult) -> Section:
    _, own = setting_columns(result)
    times = [Column(quantile_name(quantile), True) for quantile in result.options.by]
    columns = [
        Column("arm", long=True),
        Column("verdict"),
        *times,
        *(Column(title) for title in own),
        Column("answers"),
    ]
    rows = [
        Row(
            (
                Cell(arm.name, small=arm.model),
                _word(arm),
                *(Cell(milliseconds(time) if time is not None else "–", time) for time in arm.times_ms),
                *(Cell(values[place]) for values in own.values()),
                Cell(answers_words(arm)),
            )
        )
        for place, arm in enumerate(result.arms)
    ]
    return Section("Arms", table(columns, rows), "medians over the units; verdicts come from pairs of one moment")


def _word(arm: ArmResult) -> Cell:
    if arm.verdict is None:
        return Cell("base", tone="soft")
    return Cell(arm.verdict.kind.value, tone=shade(arm.verdict.kind))


def _effects(result: CompareResult, rivals: list[ArmResult]) -> list[Section]:
    effect = result.options.min_effect
    found = []
    for place, quantile in enumerate(result.options.by):
        verdicts = [(arm, arm.verdict.by[place]) for arm in rivals if arm.verdict is not None]
        rows = [_interval(arm, verdict) for arm, verdict in verdicts]
        title = f"How much faster by {quantile_name(quantile)}"
        hint = f"than {result.base}; grey is ±{100 * effect:g} %, which does not matter; right is faster"
        found.append(Section(title, intervals(rows, band=(-effect, effect)), hint))
    return found


def _interval(arm: ArmResult, verdict: Verdict) -> Interval:
    if verdict.effect is None:
        return Interval(arm.name, verdict.reason)
    words = f"{verdict.effect:+.1%}"
    if verdict.low is not None and verdict.high is not None:
        words += f" ({verdict.low:+.1%} … {verdict.high:+.1%}), {verdict.units} units"
    else:
        words += f", {verdict.reason}"
    return Interval(arm.name, words, verdict.low, verdict.effect, verdict.high, shade(verdict.kind))


def _units(result: CompareResult, rivals: list[ArmResult]) -> Section:
    """The effect of every unit by itself on the typical run: a picture of the noise."""
    names = [arm.name for arm in rivals]
    units = [unit for unit in result.units if unit.arm is None or unit.arm in names]
    effects = [100 * unit.effect for unit in units]
    groups = [(name, colour(place)) for place, name in enumerate(names)]
    series = [
        Series(name, _only(effects, [unit.arm == name for unit in units]), tone, points=True, size=6)
        for name, tone in groups
    ]
    sentinel = _only(effects, [unit.arm is None for unit in units])
    series.append(Series("base against itself", sentinel, "soft", points=True, hollow=True, size=6))
    shown = Chart(
        x=tuple(float(unit.number) for unit in units), x_title="unit", series=tuple(series), unit="%", low=0.0, high=0.0
    )
    words = Html(f"<p class='soft'>{text('Typical run of the base over that of the arm, unit by unit.')}</p>")
    return Section("Unit by unit", join((chart(shown), words)), "above 0 is faster than the base")


def _only(values: list[float], wanted: list[bool]) -> tuple[float | None, ...]:
    return tuple(value if kept else None for value, kept in zip(values, wanted, strict=True))


def _steps(result: CompareResult, rivals: list[ArmResult]) -> tuple[NextStep, ...]:
    broken = next((arm for arm in rivals if arm.refused is not None), None)
    if broken is not None and broken.outputs is not None and broken.outputs.nothing:
        asked = command("compare", *result.arms_as_written, "--data", "DATA")
        return (NextStep("Give real samples in which there is something.", asked),)
    if broken is not None:
        base = result.arms[0].model
        asked = command("debug", broken.model, "--reference", base)
        return (NextStep(f"Find where {broken.name} and {result.base} part.", asked),)
    open_arm = next((arm for arm in rivals if arm.settled_after_s is not None), None)
    if open_arm is not None and open_arm.settled_after_s is not None:
        budget = ("--budget", f"{open_arm.settled_after_s:.0f}")
        return (NextStep(f"Settle {open_arm.name}.", command("compare", *result.arms_as_written, *budget)),)
    return (
        (
            NextStep(
                "Check that the faster one is as accurate.",
                command(
                    "eval", rivals[0].model, "--reference", result.arms[0].model, "--data", "DATA", "--max-drop", "1%"
                ),
            ),
        )
        if rivals
        else ()
    )
