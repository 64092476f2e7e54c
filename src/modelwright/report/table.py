"""The rows behind an answer, for spreadsheets and for text that people write: CSV and Markdown."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from modelwright._dataclass import dataclass
from modelwright.answers.ship import ShipResult
from modelwright.answers.watch import WatchResult
from modelwright.diagnosis import DebugReport
from modelwright.evaluation import EvalResult
from modelwright.evidence import RecordLine
from modelwright.knowledge import ExperimentResult
from modelwright.measure import CompareResult, PerfResult
from modelwright.pipeline import Analyses, Builds
from modelwright.report.ship import reason_words, verdict_words
from modelwright.report.sweep import row_words, summary_words
from modelwright.report.tune import front_words
from modelwright.report.watch import result_words
from modelwright.search import TuneResult, TuneSweep
from modelwright.vocabulary import Result

_BASELINE = "baseline"
Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Table:
    """`lead` is what stands above it where people write text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    lead: str = ""

    def csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(tuple(map(_safe, row)) for row in self.rows)
        return text.getvalue()

    def markdown(self) -> str:
        lines = [self.columns, tuple("---" for _ in self.columns), *self.rows]
        lead = f"{_escaped(self.lead)}\n\n" if self.lead else ""
        return lead + "".join(f"| {' | '.join(map(_escaped, line))} |\n" for line in lines)


def rows_of(result: Result) -> Table:
    """Every sample, or every row, that the answer rests on."""
    return _TABLES[result.kind](result)


def lines_table(lines: Sequence[RecordLine]) -> Table:
    columns = ("record", "kind", "when", "models", "targets", "verdict", "call")
    rows = (
        (one.id, one.kind, one.made_at, " ".join(one.models), " ".join(one.targets), one.verdict, one.call)
        for one in lines
    )
    return Table(columns, tuple(rows))


def _perf(result: PerfResult) -> Table:
    def rows() -> Iterator[tuple[Cell, ...]]:
        for session, record in enumerate(result.sessions, start=1):
            for phase, samples in (("warmup", record.warmup_ns), ("measured", record.samples_ns)):
                yield from ((session, phase, run, sample) for run, sample in enumerate(samples, start=1))

    return Table(("session", "phase", "run", "ns"), tuple(rows()))


def _compare(result: CompareResult) -> Table:
    def rows() -> Iterator[tuple[Cell, ...]]:
        for unit in result.units:
            arm = unit.arm if unit.arm is not None else result.base
            for name, second, bursts in ((result.base, False, unit.base_ns), (arm, True, unit.arm_ns)):
                slot = 2 if second == unit.base_first else 1
                for burst, samples in enumerate(bursts, start=1):
                    yield from ((unit.number, unit.arm is None, name, slot, burst, sample) for sample in samples)

    return Table(("unit", "sentinel", "arm", "slot", "burst", "ns"), tuple(rows()))


def _experiment(result: ExperimentResult) -> Table:
    def rows() -> Iterator[tuple[Cell, ...]]:
        for number, unit in enumerate(result.units, start=1):
            for arm, bursts in (("base", unit.base_ns), (result.change, unit.arm_ns)):
                for burst, samples in enumerate(bursts, start=1):
                    yield from ((number, unit.sentinel, arm, burst, sample) for sample in samples)

    return Table(("unit", "sentinel", "arm", "burst", "ns"), tuple(rows()))


def _eval(result: EvalResult) -> Table:
    return _of(result.scores)


def _debug(result: DebugReport) -> Table:
    return _of(result.activations)


def _analyze(result: Analyses) -> Table:
    rows = (
        (analysis.target, left.name, left.op_type, left.why.reason if left.why is not None else None)
        for analysis in result
        for left in analysis.placement.left
    )
    return Table(("target", "node", "op_type", "why"), tuple(rows))


def _build(result: Builds) -> Table:
    rows = (
        (build.target, part.name, stage.stage, stage.key.digest, stage.produced, stage.seconds, stage.artifact.size)
        for build in result
        for part in build.components
        for stage in part.stages
    )
    return Table(("target", "component", "stage", "key", "ran", "seconds", "bytes"), tuple(rows))


def _tune(result: TuneResult) -> Table:
    found, on = _of(result.rows), set(result.front.labels)
    rows = tuple((*cells, row.label in on) for cells, row in zip(found.rows, result.rows, strict=True))
    lead = f"{result.model} for {result.target}: {result.sentence}; {front_words(result)}"
    return Table((*found.columns, "front"), rows, lead)


def _sweep(result: TuneSweep) -> Table:
    def rows() -> Iterator[tuple[Cell, ...]]:
        for row in result.rows:
            found = row.result
            verdict = found.finding.by[0] if found is not None and found.finding is not None else None
            proven = verdict if found is not None and found.champion != _BASELINE else None
            numbers = (None,) * 4 if proven is None else (proven.effect, proven.low, proven.high, proven.units)
            yield (row.name, row.target, found.champion if found else None, *numbers, row_words(row), row.record)

    columns = ("model", "target", "champion", "effect", "low", "high", "units", "says", "record")
    return Table(columns, tuple(rows()), summary_words(result))


def _ship(result: ShipResult) -> Table:
    rows = tuple((row.gate, row.target, row.word, reason_words(row), row.record) for row in result.gates)
    return Table(("gate", "variant", "answer", "why", "record"), rows, verdict_words(result))


def _watch(result: WatchResult) -> Table:
    rows = (
        (case.name, case.target, row.aspect, row.word, row.sentence, row.record)
        for case in result.cases
        for row in case.rows
    )
    return Table(("case", "target", "aspect", "answer", "why", "record"), tuple(rows), result_words(result))


_TABLES: Mapping[str, Callable[[Any], Table]] = {
    "perf": _perf,
    "compare": _compare,
    "eval": _eval,
    "debug": _debug,
    "analyze": _analyze,
    "build": _build,
    "repair": lambda result: _of(result.result.rows),
    "tune": _tune,
    "sweep": _sweep,
    "experiment": _experiment,
    "ship": _ship,
    "watch": _watch,
}


def _of(rows: Iterable[Any]) -> Table:
    """Dataclasses: a column for each field that is one value, also of a dataclass inside."""
    flat = [dict(_cells(row)) for row in rows]
    names = tuple(dict.fromkeys(name for row in flat for name in row))
    return Table(names, tuple(tuple(row.get(name) for name in names) for row in flat))


def _cells(row: Any, before: str = "") -> Iterator[tuple[str, Cell]]:
    for item in dataclasses.fields(row):
        value = getattr(row, item.name)
        if dataclasses.is_dataclass(value):
            yield from _cells(value, f"{before}{item.name}.")
        elif not isinstance(value, tuple | Mapping):
            yield f"{before}{item.name}", value


def _safe(cell: Cell) -> Cell:
    """A text that a spreadsheet would take for a formula stays a text."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def _escaped(cell: Cell) -> str:
    text = "" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell)
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("\r", " ")
