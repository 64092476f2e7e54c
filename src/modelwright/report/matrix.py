"""The answers of `wright matrix`."""

from __future__ import annotations

import contextlib
import datetime
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.farm import CellAccuracy, CellPerf, CellStatus, FailureClass, MatrixPlan, MatrixResult, PlannedCell
from modelwright.report._tables import Col, fitted
from modelwright.report._units import human_bytes
from modelwright.store import LedgerEvent

if TYPE_CHECKING:
    import rich.console
    import rich.live
    import rich.text
else:
    rich = lazy("rich")

_WORDS = {"published": "published", "validated": "validated", "built": "unjudged", "failed": "failed"}
_MOST, _MOST_MEASURED = 8, 40
NEXT_STEPS: Mapping[FailureClass, str] = {
    "input": "mend the model, its data or its row; a changed row is another cell, and is built by the next run",
    "gate": "see where it loses accuracy: wright debug; or build it in another precision",
    "target": "the target computes something else: see `wright matrix explain`, then wright debug or another precision",
    "crash": "native code ended the process: look into the log; wright matrix retry --class crash tries again",
    "timeout": "wright matrix retry --class timeout --timeout 2h gives it more time",
    "stalled": "look into the log for where it stood still; wright matrix retry --class stalled",
    "oom": "wright matrix retry --class oom --memory SIZE allows more, if the machine has it",
    "import_error": "install what is missing; wright matrix retry --class import_error",
    "raised": "the traceback is in the log; wright matrix retry --class raised",
    "runtime": "read what the runtime says; wright matrix retry --class runtime",
    "disk": "make room, or give more with --disk; the next run tries again",
    "store": "mend the store (wright cache verify); the next run tries again",
    "folder": "its place in the folder is taken: move that away, or give another folder; the next run writes it",
    "feed-auth": "log in to the feed again; the next run publishes what is built",
    "feed-unavailable": "the next run publishes what is built",
    "feed-unsupported": "install what the feed needs; the next run publishes what is built",
    "feed-conflict": "the feed has other content under this name: publish under another name",
    "feed-corrupt": "the feed does not hold what was sent; the next run sends it again",
    "feed-refused": "the feed does not take this package: see why; the next run tries again",
}


def render_matrix(found: MatrixResult, console: rich.console.Console) -> None:
    console.print(_by_target(found, console.width))
    if measured := [one for one in found.cells if one.perf is not None or one.accuracy is not None]:
        _measured(measured, console)
    for kind, cells in failures(found).items():
        _failures(kind, cells, console)
    for line in summary(found):
        console.print(line, soft_wrap=True)


def render_matrix_plan(found: MatrixPlan, console: rich.console.Console) -> None:
    columns = [Col("model", "name"), Col("target"), Col("precision"), Col("to do", "text"), Col("shared with", drop=1)]
    console.print(fitted(columns, [_planned(one) for one in found.cells], console.width))
    for one in found.shared:
        console.print(f"{one.stage}: {one.distinct} instead of {one.alone}, if every cell were built alone")
    states = Counter(one.state for one in found.cells)
    words = ", ".join(f"{count} {_PLANNED[state]}" for state, count in states.items())
    what = f"{found.models} models, {len(found.cells)} cells: {words}."
    console.print(f"{what} Nothing was run or written.", soft_wrap=True)


_PLANNED = {
    "run": "to be done",
    "finished": "finished by an earlier run",
    "failed": "failed in an earlier run (wright matrix retry)",
    "refused": "that cannot be built",
}


def _planned(one: PlannedCell) -> tuple[str, ...]:
    stages = [step.stage for step in one.stages if step.state != "cached"]
    done = "everything is in the store" if one.stages and not stages else " ".join(dict.fromkeys(stages))
    others = max((len(step.shared_with) for step in one.stages), default=0)
    words = {"finished": "finished", "failed": f"failed: {one.why}", "refused": one.why or "cannot be built"}
    todo = words.get(one.state, done)
    note = f" ({one.why})" if one.why and one.state in ("run", "finished") else ""
    shared = f"{others} targets" if others else ""
    return one.cell.model, one.cell.target, one.precision or one.cell.precision or "", todo + note, shared


def _by_target(found: MatrixResult, width: int) -> rich.console.RenderableType:
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    size: Counter[str] = Counter()
    for status in found.cells:
        rows[status.cell.target][_WORDS.get(status.state, "left")] += 1
        size[status.cell.target] += status.facts.bytes if status.facts is not None else 0
    words = ("published", "validated", "unjudged", "failed", "left")
    shown = [word for word in words if any(counts[word] for counts in rows.values())]
    columns = [Col("target"), *(Col(word, "number") for word in shown), Col("size", "number", drop=1)]
    lines = [
        (target, *(str(counts[word] or "–") for word in shown), human_bytes(size[target]))
        for target, counts in rows.items()
    ]
    return fitted(columns, lines, width)


def _measured(cells: Sequence[CellStatus], console: rich.console.Console) -> None:
    """What was measured; of what could not be, why, once for all cells of one cause."""
    known = [one for one in cells if (one.perf and one.perf.records) or (one.accuracy and one.accuracy.record)]
    columns = [Col("model", "name"), Col("target"), Col("precision", drop=2), Col("p50 ms", "number")]
    columns += [Col("score", "number"), Col("reference", "number"), Col("metric", drop=1), Col("on", drop=3)]
    rows = [_measured_row(one) for one in known[:_MOST_MEASURED]]
    if rows:
        console.print(fitted(*_without_empty(columns, rows), console.width))
    if len(known) > _MOST_MEASURED:
        console.print(f"and {len(known) - _MOST_MEASURED} more; the page and --json have all")
    if others := dict.fromkeys(one.cell.target for one in known if _scored_elsewhere(one)):
        words = f"scores of {', '.join(others)} are those of the file on a CPU: nobody has the device itself"
        console.print(rich.text.Text(words), soft_wrap=True)
    for what in ("perf", "accuracy"):
        why: dict[str, list[str]] = defaultdict(list)
        for one in cells:
            why[_unmeasured(one, what) or ""].append(one.cell.target)
        for words, targets in why.items():
            if words:
                many = f"{len(targets)} cell{'s' if len(targets) > 1 else ''} ({', '.join(dict.fromkeys(targets))})"
                console.print(rich.text.Text(f"no {_MEASURES[what]} of {many}: {words}"), soft_wrap=True)


def _scored_elsewhere(status: CellStatus) -> bool:
    score = status.accuracy
    return score is not None and score.value is not None and score.target == "cpu" and status.cell.target != "cpu"


_MEASURES = {"perf": "latency", "accuracy": "score"}


def _unmeasured(status: CellStatus, what: str) -> str | None:
    if what == "perf":
        return None if status.perf is None or status.perf.p50_ms is not None else status.perf.why
    return None if status.accuracy is None or status.accuracy.value is not None else status.accuracy.reason


def _without_empty(columns: list[Col], rows: list[tuple[str, ...]]) -> tuple[list[Col], list[list[str]]]:
    """A column in which nothing stands says nothing."""
    kept = [place for place in range(len(columns)) if any(row[place] not in ("", "–") for row in rows)]
    return [columns[place] for place in kept], [[row[place] for place in kept] for row in rows]


def _measured_row(status: CellStatus) -> tuple[str, ...]:
    perf, score = status.perf, status.accuracy
    values = [None, None] if score is None else [score.value, score.reference]
    times = () if perf is None else tuple(part.p50_ms for part in perf.parts if part.p50_ms is not None)
    simulated = ", simulated" if score is not None and score.simulated else ""
    own = "" if score is None or score.target in (None, "cpu") else f"{score.target}{simulated}"
    machine = (perf and perf.machine) or (score and score.machine) or ""
    return (
        status.cell.model,
        status.cell.target,
        "" if status.facts is None else status.facts.precision,
        " + ".join(f"{time:.4g}" for time in times) or "–",
        *("–" if value is None else f"{value:.4g}" for value in values),
        "" if score is None else score.metric or "",
        " ".join(filter(None, (machine, own))),
    )


def evidence_of(status: CellStatus) -> tuple[str, ...]:
    """Of the gate and the target, the measurement, the evaluation."""
    found = () if status.facts is None else status.facts.evidence
    timed = () if status.perf is None else status.perf.records
    judged = () if status.accuracy is None or status.accuracy.record is None else (status.accuracy.record,)
    return (*found, *timed, *judged)


def perf_words(found: CellPerf | None) -> str | None:
    """Part by part, with what they were measured on; null where nobody asked."""
    if found is None:
        return None
    several = len(found.parts) > 1
    times = [
        (f"{part.part} " if several else "") + f"{part.p50_ms:.4g} ms in the typical run (p50)"
        for part in found.parts
        if part.p50_ms is not None
    ]
    where = "" if found.machine is None else f" on {found.machine}"
    return ", ".join(times) + where if times else f"not known: {found.why}"


def accuracy_words(found: CellAccuracy | None) -> str | None:
    if found is None:
        return None
    if found.value is None:
        return f"not known: {found.reason}"
    known = "unknown" if found.reference is None else f"{found.reference:.4g}"
    where = f"{found.target}" + (", simulated" if found.simulated else "")
    machine = "" if found.machine is None else f" of {found.machine}"
    return (
        f"{found.metric} {found.value:.4g} on {where}{machine}, the model as it came {known}; {found.samples} samples"
    )


def failures(found: MatrixResult) -> dict[FailureClass, list[CellStatus]]:
    """The failed cells by class, the largest class first."""
    classes: dict[FailureClass, list[CellStatus]] = defaultdict(list)
    for status in found.failed:
        if status.failure is not None:
            classes[status.failure.kind].append(status)
    return dict(sorted(classes.items(), key=lambda item: -len(item[1])))


def _failures(kind: FailureClass, cells: Sequence[CellStatus], console: rich.console.Console) -> None:
    many = f"{len(cells)} cell{'s' if len(cells) > 1 else ''}"
    console.print(rich.text.Text.assemble(("failed ", "red"), (kind, "bold red"), f": {many}"))
    causes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for status in cells:
        assert status.failure is not None
        causes[status.cell.model, f"{status.failure.problem} ({status.failure.cause})"].append(status.cell.target)
    for (model, why), targets in list(causes.items())[:_MOST]:
        console.print(rich.text.Text(f"  {model} for {', '.join(targets)}: {why}"), soft_wrap=True)
    if len(causes) > _MOST:
        console.print(f"  and {len(causes) - _MOST} more; --json has all")
    console.print(rich.text.Text(f"  next: {NEXT_STEPS[kind]}"), soft_wrap=True)


def summary(found: MatrixResult) -> Iterator[str]:
    """What all of it came to, in sentences."""
    counts = ", ".join(f"{count} {word}" for word, count in found.counts.items())
    yield f"{len(found)} cell{'s' if len(found) != 1 else ''}: {counts}."
    if found.totals is not None and found.totals.stages:
        stages = ", ".join(f"{count} × {stage}" for stage, count in found.totals.stages.items())
        yield f"Done now: {stages}; {found.totals.cpu_seconds:.1f} s of CPU in {found.totals.seconds:.1f} s."
    if found.totals is not None and found.totals.separate_bytes and found.disk is not None:
        yield (
            f"Builds of {human_bytes(found.totals.separate_bytes)} are kept in {human_bytes(found.disk.kept)}"
            f" together with what they were made from; at most {human_bytes(found.disk.peak)} were on disk"
            + (f" of {human_bytes(found.disk.limit)}" if found.disk.limit is not None else "")
            + (f", {human_bytes(found.disk.evicted)} went to make room" if found.disk.evicted else "")
            + "."
        )
    if found.disk is not None and found.disk.limit is not None and found.disk.peak > found.disk.limit:
        yield (
            "That is more than was allowed: what a build takes is a guess until it is made, and journals and what is at"
            " work count too."
        )
    if any(status.state == "built" for status in found.cells):
        yield "Unjudged: no real data says how good they are; name some with --data or in the list."
    if found.folder is not None:
        yield f"Written to {found.folder}."


def render_cells(
    cells: Sequence[CellStatus], events: Mapping[str, Sequence[LedgerEvent]], console: rich.console.Console
) -> None:
    for status in cells:
        _cell(status, console)
        columns = [Col("when"), Col("state"), Col("attempt", "number"), Col("worker", "name", drop=1)]
        rows = [
            (_when(event.at), event.state, str(event.note.get("attempt", "")), event.worker)
            for event in _changes(events[status.cell.id])
        ]
        if rows:
            console.print(fitted(columns, rows, console.width))


def _changes(events: Sequence[LedgerEvent]) -> Iterator[LedgerEvent]:
    """Where a cell goes on in the same state, as when it is written to another folder, one line is enough."""
    before: tuple[object, ...] = ()
    for event in events:
        now = (event.state, event.note.get("attempt"))
        if now != before:
            yield event
        before = now


def _cell(status: CellStatus, console: rich.console.Console) -> None:
    cell, facts, failure = status.cell, status.facts, status.failure
    head = (cell.model, "bold"), " for ", (cell.target, "bold"), f": {status.words}"
    console.print(rich.text.Text.assemble(*head), soft_wrap=True)
    lines = [("note", cell.note), ("cell", cell.id), ("folder", status.folder), ("feed", status.reference)]
    if facts is not None:
        lines += [
            ("precision", facts.precision),
            ("size", human_bytes(facts.bytes)),
            ("gate", f"{_ANSWERS[facts.gate]}, worst cosine {cosine_words(facts.cosine)}"),
            ("target", placement_words(status)),
            ("took", f"{facts.seconds:.1f} s, {facts.cpu_seconds:.1f} s of CPU, {human_bytes(facts.peak_rss_bytes)}"),
            ("machines", ", ".join(facts.machines)),
            ("build", facts.digest),
            ("evidence", ", ".join(key[:12] for key in evidence_of(status))),
        ]
    lines += [("latency", perf_words(status.perf)), ("accuracy", accuracy_words(status.accuracy))]
    if failure is not None:
        lines += [
            ("failed", failure.problem),
            ("why", failure.cause),
            ("fix", failure.fix),
            ("log", failure.log),
            ("next", NEXT_STEPS[failure.kind]),
        ]
    for name, words in lines:
        if words:
            console.print(rich.text.Text(f"  {name:<10}{words}"), soft_wrap=True)


_ANSWERS = {True: "passed", False: "failed", None: "could not judge"}


def cosine_words(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.6f}"


def placement_words(status: CellStatus) -> str:
    """What the target has of the graph; why nobody knows, where nobody does."""
    facts = status.facts
    if facts is None:
        return ""
    if facts.nodes:
        return f"{facts.on_target} of {facts.nodes} nodes" + (", simulated" if facts.simulated else "")
    return "" if facts.reason is None else f"not asked: {facts.reason}"


def _when(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")


@contextlib.contextmanager
def watching(console: rich.console.Console) -> Iterator[Callable[[MatrixResult], None]]:
    """The table by targets, drawn over the one before; where no line can change it is drawn once, at the end."""
    with rich.live.Live(console=console, transient=True, auto_refresh=False) as live:
        yield lambda found: live.update(_by_target(found, console.width), refresh=console.is_terminal)
