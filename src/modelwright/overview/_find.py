"""Which models there are for a task on a target, by what is shown of them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from modelwright._dataclass import dataclass
from modelwright.errors import WrightError
from modelwright.overview._hub import HubModels
from modelwright.overview._types import UNKNOWN, Overview, OverviewCell, Sourced
from modelwright.recipes import CATALOG_WORD, CatalogEntry, IndexRow
from modelwright.support import LEVELS, Statement, read_claim, read_evidence, recorded_run
from modelwright.targets import Target, parse_target
from modelwright.vocabulary import Result, read_task

_NOT_SHOWN = "its evidence does not say it"


@dataclass(frozen=True)
class FoundModel:
    """`level` is what its evidence shows on this target, None for nothing. Numbers name the statement of the evidence
    or the record that they are from. `command` builds it; `needs` is what has to be had first."""

    model: str
    origin: str
    level: str | None
    shown_on: str | None
    precision: str | None
    licence: str | None
    command: str
    needs: str | None = None
    accuracy: Sourced = UNKNOWN
    latency: Sourced = UNKNOWN
    placed: Sourced = UNKNOWN
    nodes: Sourced = UNKNOWN
    size: Sourced = UNKNOWN


@dataclass(frozen=True)
class PassedOver:
    model: str
    why: str


@dataclass(frozen=True)
class Found(Result):
    """`hub` says what became of asking the Hub, None where it answered."""

    kind: ClassVar[str] = "find"

    task: str
    target: str
    rows: tuple[FoundModel, ...]
    left_out: tuple[PassedOver, ...]
    hub: str | None

    def content(self) -> dict[str, Any]:
        return {"found": len(self.rows), **super().content()}


@dataclass(frozen=True)
class FindWish:
    task: str
    target: Target
    max_size: int | None = None
    min_level: str | None = None


def shortlist(
    wish: FindWish, entries: Iterable[tuple[CatalogEntry, IndexRow]], known: Overview, hub: HubModels
) -> Found:
    """Those that were shown most first; what is known to be bad, too large or not shown enough is left out, and why."""
    rows: list[FoundModel] = []
    left: list[PassedOver] = []
    for entry, row in entries:
        if not _wanted(wish, row):
            continue
        found = _of_entry(entry, row, known)
        why = (row.known_bad and f"known to be bad: {row.known_bad}") or _too_little(wish, found)
        left.append(PassedOver(entry.name, why)) if why else rows.append(found)
    for found in _of_hub(wish, hub):
        _sort_in(found, _too_little(wish, found), rows, left)
    rows.sort(key=lambda row: (-_height(row.level), row.origin, -(row.accuracy.value or 0.0), row.model))
    return Found(wish.task, str(wish.target), tuple(rows), tuple(left), hub.said)


def _sort_in(found: FoundModel, why: str | None, rows: list[FoundModel], left: list[PassedOver]) -> None:
    if why is None:
        rows.append(found)
    else:
        left.append(PassedOver(found.model, why))


def _wanted(wish: FindWish, row: IndexRow) -> bool:
    target = parse_target(row.target)
    same = (target.ep, target.device) == (wish.target.ep, wish.target.device)
    return same and row.task is not None and read_task(row.task).name == wish.task


def _height(level: str | None) -> int:
    return (None, *LEVELS).index(level)


def _too_little(wish: FindWish, found: FoundModel) -> str | None:
    if wish.min_level is not None and _height(found.level) < _height(wish.min_level):
        return f"shown to {found.level or 'no level'} on {wish.target}, {wish.min_level} is asked for"
    if wish.max_size is not None and found.size.value is None:
        return f"its size is not known: {found.size.reason}"
    if wish.max_size is not None and (found.size.value or 0) > wish.max_size:
        return f"{found.size.value:,.0f} bytes, {wish.max_size:,} are allowed"
    return None


def _of_entry(entry: CatalogEntry, row: IndexRow, known: Overview) -> FoundModel:
    measured = _measured(entry, row)
    here = _cell(entry, row, known)
    said_here = {} if here is None else {name: getattr(here, name) for name in _NUMBERS}
    numbers: dict[str, Any] = {name: _best(measured.get(name), said_here.get(name)) for name in _NUMBERS}
    needs = entry.said.origin if entry.kind == "brought" else None
    said = (row.level, row.shown_on, row.precision, row.licence, _command(entry, row), needs)
    return replace(FoundModel(entry.name, "catalogue", *said), **numbers)


_NUMBERS = ("accuracy", "latency", "placed", "nodes", "size")


def _best(shown: Sourced | None, here: Sourced | None) -> Sourced:
    """What the evidence of the entry says, else a record of this store about the same content."""
    if shown is not None and shown.value is not None:
        return shown
    if here is not None and here.value is not None:
        return here
    return shown or Sourced(None, reason=_NOT_SHOWN)


def _cell(entry: CatalogEntry, row: IndexRow, known: Overview) -> OverviewCell | None:
    mine = [model for model in known.models if model.identity is not None and model.identity == entry.identity()]
    cells = [cell for model in mine for cell in model.cells if cell.target == row.target]
    return next((cell for cell in cells if cell.precision == row.precision), None)


def _measured(entry: CatalogEntry, row: IndexRow) -> dict[str, Sourced]:
    """Of the last statement about each level, where that passes: as the level is told, whatever was said before it, of
    another precision, or without the contribution."""
    try:
        claim, evidence = read_claim(entry.folder), read_evidence(entry.folder)
    except WrightError:
        return {}
    by_id = {one.id: one for one in evidence.statements}
    found: dict[str, Sourced] = {}
    for one in recorded_run(claim, evidence, entry.name).rows:
        same = one.target == row.target and one.precision == (row.precision or one.precision)
        if same and one.word == "pass" and one.statements and one.component is None:
            found |= dict(_numbers(by_id[one.statements[-1]]))
    return found


def _numbers(one: Statement) -> Iterator[tuple[str, Sourced]]:
    level, said = one.predicate.asked.level, one.predicate.measured
    records = one.predicate.records
    sourced = partial(Sourced, record=records[0] if records else one.id, origin="record" if records else "statement")
    if level == "L1" and said.get("nodes_per_ep"):
        nodes = said["nodes_per_ep"]
        yield "placed", sourced(nodes.get(said.get("wanted"), 0), "nodes")
        yield "nodes", sourced(sum(nodes.values()), "nodes")
    if level == "L3":
        about = f"reference {said.get('reference')}, {said.get('samples')} samples"
        yield "accuracy", sourced(said.get("candidate"), said.get("metric") or "", about=about)
    if level == "L4":
        yield "latency", sourced(said.get("p50_ms"), "ms", high=said.get("p99_ms"), about="p99")


def _command(entry: CatalogEntry, row: IndexRow) -> str:
    if entry.kind == "hub":
        words = ["wright", "build", entry.said.source, "-r", f"{CATALOG_WORD}:{entry.name}", "--target", row.target]
        return shlex.join([*words, "--revision", entry.said.pin, "-o", entry.name])
    brought = ["-m", entry.said.source.rstrip("/")] if entry.kind == "brought" else []
    return shlex.join(["wright", "catalog", "build", entry.name, *brought, "-o", entry.name])


def _of_hub(wish: FindWish, hub: HubModels) -> Iterator[FoundModel]:
    unknown = Sourced(None, reason="nothing is shown of it: the Hub says how often it is fetched, not how it runs")
    for name, licence in hub.models:
        command = shlex.join(["wright", "build", name, "--target", str(wish.target), "-o", name.replace("/", "_")])
        numbers: dict[str, Any] = dict.fromkeys(_NUMBERS, unknown)
        yield replace(FoundModel(name, "Hub", None, None, None, licence, command), **numbers)
