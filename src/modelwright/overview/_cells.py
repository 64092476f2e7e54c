"""Cells out of what is known: the status of a matrix, a build, any other record. Numbers are taken over as they are."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from modelwright.evidence import Record
from modelwright.farm import CellStatus
from modelwright.overview._types import UNKNOWN, OverviewCell, Sourced
from modelwright.pipeline import BuildResult, toml_text
from modelwright.targets import parse_target

Place = tuple[str, str, str]
_NUMBERS = ("size", "cosine", "placed", "nodes", "latency", "accuracy", "reference")
_STATES = {True: "validated", False: "failed (gate)", None: "built, unjudged"}
NOT_BUILT = "not built"


def nothing(place: Place) -> OverviewCell:
    model, target, precision = place
    return OverviewCell(model, target, precision, NOT_BUILT)


def newer(cell: OverviewCell, before: OverviewCell) -> OverviewCell:
    """What the newer one says, and what only the older one does."""
    kept = {name: getattr(before, name) for name in _NUMBERS if getattr(cell, name).value is None}
    kept = {name: value for name, value in kept.items() if value.value is not None or value != UNKNOWN}
    rest = ("level", "failure", "note", "command", "made_at", "recipe")
    kept |= {name: getattr(before, name) for name in rest if getattr(cell, name) is None}
    if cell.state == NOT_BUILT:
        kept["state"] = before.state
    records = tuple(dict.fromkeys((*cell.records, *before.records)))
    return replace(cell, records=records, simulated=cell.simulated or before.simulated, **kept)


def cell_of_status(model: str, status: CellStatus) -> OverviewCell:
    """Of the ledger: its numbers are known by the id of the cell."""
    facts, cell = status.facts, status.cell
    sourced = partial(Sourced, record=cell.id, origin="matrix cell")
    records = [*(status.perf.records if status.perf else ()), status.accuracy.record if status.accuracy else None]
    found = replace(
        nothing((model, cell.target, cell.precision or "as its policy says" if facts is None else facts.precision)),
        state=status.words,
        failure=status.failure if status.state == "failed" else None,
        note=cell.note,
        records=tuple(record for record in records if record is not None),
        command=shlex.join(("wright", "matrix", "explain", cell.model, cell.target)),
        made_at=None if status.at is None else datetime.fromtimestamp(status.at, UTC).isoformat(timespec="seconds"),
    )
    if facts is not None:
        why = facts.reason or "the target was not asked"
        found = replace(
            found,
            size=sourced(facts.bytes, "B"),
            cosine=sourced(facts.cosine, "", reason="the gate found none"),
            placed=sourced(facts.on_target, "nodes", reason=why),
            nodes=sourced(facts.nodes, "nodes", reason=why),
            simulated=facts.simulated,
        )
    return _with_measured(found, status)


def _with_measured(found: OverviewCell, status: CellStatus) -> OverviewCell:
    perf, score = status.perf, status.accuracy
    if perf is not None:
        record = perf.records[0] if len(perf.records) == 1 else None
        high = perf.parts[0].p90_ms if len(perf.parts) == 1 else None
        several = "several graphs have no time in common" if len(perf.parts) > 1 else None
        time = Sourced(perf.p50_ms, "ms", record, high=high, about="p90", reason=perf.why or several)
        found = replace(found, latency=time)
    if score is not None:
        where = f"{score.metric} on {score.target}, {score.samples} samples" if score.metric else ""
        unit = score.metric or ""
        value = Sourced(score.value, unit, score.record, about=where, reason=score.reason)
        reference = Sourced(score.reference, unit, score.record, reason=score.reason)
        found = replace(found, accuracy=value, reference=reference)
    return found


def cell_of_build(model: str, build: BuildResult, record: Record[Any]) -> OverviewCell:
    sourced = partial(Sourced, record=record.id)
    checks = [part.check for part in build.components if part.check is not None and part.check.opened]
    cosines = [one for part in build.components if (one := part.validation.worst_cosine) is not None]
    size = sum(file.size for part in build.components for file in part.final.files)
    why = "the target was not asked"
    return replace(
        nothing((model, build.target, build.recipe.precision)),
        state=_STATES[build.passed],
        size=sourced(size, "B"),
        cosine=sourced(min(cosines, default=None), "", reason="the gate found none"),
        placed=sourced(sum(one.on_target for one in checks) if checks else None, "nodes", reason=why),
        nodes=sourced(sum(one.nodes for one in checks) if checks else None, "nodes", reason=why),
        simulated=any(one.simulated for one in checks),
        records=(record.id,),
        command=" ".join(record.call),
        made_at=record.made_at,
        recipe=toml_text(build.recipe),
    )


def files_of_build(build: BuildResult) -> list[str]:
    """Graphs alone: two builds may share a file of weights."""
    return [file.digest for part in build.components for file in part.final.files if file.name.endswith(".onnx")]


def files_of_source(build: BuildResult) -> list[str]:
    first = build.components[0].stages[0].artifact.files
    return [file.digest for file in first if file.name.endswith(".onnx")]


def cell_of_record(place: Place, record: Record[Any]) -> OverviewCell:
    found = replace(nothing(place), records=(record.id,), made_at=record.made_at)
    said = _SAID.get(record.kind)
    return found if said is None else replace(found, **said(record, place[1]))


def _perf(record: Record[Any], target: str) -> dict[str, Any]:
    time, why = record.payload.latency, record.payload.latency_reason
    value, high = (None, None) if time is None else (time.p50_ms, time.p90_ms)
    return {"latency": Sourced(value, "ms", record.id, high=high, about="p90", reason=why)}


def _eval(record: Record[Any], target: str) -> dict[str, Any]:
    found = record.payload
    values, metric = found.values, found.metric
    if values is None or metric is None:
        return {}
    pair = found.comparison
    low, high = (None, None) if pair is None else (pair.low, pair.high)
    about = f"{metric.name}, {found.data.selected} samples; bounds are those of the drop"
    return {
        "accuracy": Sourced(values.candidate, metric.name, record.id, "record", low, high, about, values.reason),
        "reference": Sourced(values.reference, metric.name, record.id, reason=values.reason),
        "simulated": found.candidate.simulated,
    }


def _analyze(record: Record[Any], target: str) -> dict[str, Any]:
    found = next((one for one in record.payload if str(parse_target(one.target)) == target), None)
    if found is None or found.placement.status != "placed":
        why = found.placement.reason if found is not None else None
        missing = Sourced(None, "nodes", record.id, reason=why or "it was not asked")
        return {"placed": missing, "nodes": missing}
    placement = found.placement
    own = placement.running - len(placement.left)
    return {"placed": Sourced(own, "nodes", record.id), "nodes": Sourced(placement.running, "nodes", record.id)}


_SAID = {"perf": _perf, "eval": _eval, "analyze": _analyze}
NUMBERED = tuple(_SAID)


def headline(record: Record[Any]) -> Sourced | None:
    """The one number that a record is looked up for."""
    if record.kind not in ("perf", "eval"):
        return None
    return _SAID[record.kind](record, "").get("latency" if record.kind == "perf" else "accuracy")
