"""From records, the ledger, the catalogue and the findings to one overview."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from modelwright import evidence, farm
from modelwright._dataclass import dataclass
from modelwright.errors import WrightError
from modelwright.evidence import Record, RecordLine
from modelwright.farm import CellStatus
from modelwright.knowledge import KnowledgeBase
from modelwright.overview._cells import (
    NOT_BUILT,
    NUMBERED,
    Place,
    cell_of_build,
    cell_of_record,
    cell_of_status,
    files_of_build,
    files_of_source,
    headline,
    newer,
)
from modelwright.overview._types import AS_IT_CAME, MatrixOrder, Overview, OverviewCell, OverviewModel, SourcedRecord
from modelwright.recipes import IndexRow, index_rows
from modelwright.store import LedgerEvent, Store
from modelwright.vocabulary import OnProgress, Progress, silent

Read = Callable[[str], Record[Any]]
MOST = 5_000
"""Records that are read; a store may hold more, and then that is said."""


def gather(store: Store, read: Read, catalogue: Path, on_progress: OnProgress | None = None) -> Overview:
    """`read` gives a record by its id, typed. What cannot be read is left out and counted."""
    tell, shelf = on_progress or silent, _Shelf()
    lines = evidence.list_records(store)
    read_of = [(line, found) for line in lines[:MOST] if (found := _read(read, line)) is not None]
    tell(Progress(f"{len(read_of)} of {len(lines)} records are read"))
    statuses, orders = _matrices(store)
    for status in statuses:
        shelf.add_status(status)
    for _, record in reversed(read_of):  # the oldest first: later ones have the last word
        shelf.add_builds(record)
    about = {record.id: shelf.add(record) for _, record in reversed(read_of)}
    records = tuple(SourcedRecord(line, about[one.id], headline(one), _machine(one)) for line, one in read_of)
    rows = index_rows(catalogue)
    models = tuple(_with_entry(model, rows) for model in shelf.models())
    targets = tuple(dict.fromkeys(cell.target for model in models for cell in model.cells))
    return Overview(
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        targets=_in_order(targets),
        models=models,
        records=records,
        support=rows,
        findings=KnowledgeBase(store).standings(),
        orders=orders,
        left=len(lines) - len(read_of),
    )


def _read(read: Read, line: RecordLine) -> Record[Any] | None:
    try:
        return read(line.id)
    except WrightError:
        return None


def _machine(record: Record[Any]) -> str:
    host = record.environment.host
    return f"{host.cpu.model or host.machine}, {host.system}"


def _in_order(targets: Iterable[str]) -> tuple[str, ...]:
    """As a matrix has them, others behind."""
    order = {target: place for place, target in enumerate(farm.EIGHT)}
    return tuple(sorted(targets, key=lambda target: (order.get(target, len(order)), target)))


@dataclass
class _Shelf:
    """Cells by model, target and precision; which file is which of them."""

    cells: dict[Place, OverviewCell] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    measured: dict[str, Place] = field(default_factory=dict)
    identities: dict[str, str] = field(default_factory=dict)

    def key(self, name: str) -> str:
        """Of a model, by what it is called."""
        title = title_of(name)
        found = slug(title)
        self.titles.setdefault(found, title)
        return found

    def put(self, cell: OverviewCell) -> Place:
        place = (cell.model, cell.target, cell.precision)
        before = self.cells.get(place)
        self.cells[place] = cell if before is None else newer(cell, before)
        return place

    def add_status(self, status: CellStatus) -> None:
        key = self.key(status.cell.model)
        if status.cell.task is not None:
            self.tasks[key] = status.cell.task
        place = self.put(cell_of_status(key, status))
        known = [*(status.perf.records if status.perf else ()), status.accuracy.record if status.accuracy else None]
        self.measured |= {record: place for record in known if record is not None}

    def add_builds(self, record: Record[Any]) -> None:
        """What was built of what: other records are about its files."""
        if record.kind != "build":
            return
        for build in record.payload:
            place = self.put(cell_of_build(self.key(build.source), build, record))
            self.identities[place[0]] = build.identity
            if build.task is not None:
                self.tasks[place[0]] = build.task
            self.places |= dict.fromkeys(files_of_build(build), place)
            self.sources |= dict.fromkeys(files_of_source(build), place[0])

    def add(self, record: Record[Any]) -> tuple[str, ...]:
        """The cells that a record is about get its numbers; answers the keys of their models."""
        if record.kind == "build":
            return tuple(dict.fromkeys(self.key(build.source) for build in record.payload))
        places = list(dict.fromkeys(self._about(record)))
        known = {place[0] for place in self.cells}
        for place in places:
            # What has no number for a cell makes none, unless nothing else is known of the model.
            if place in self.cells or record.kind in NUMBERED or place[0] not in known:
                self.put(cell_of_record(place, record))
        return tuple(dict.fromkeys(place[0] for place in places))

    def _about(self, record: Record[Any]) -> Iterator[Place]:
        if record.id in self.measured:
            yield self.measured[record.id]
            return
        for model in record.models:
            if model.role in ("reference", "source") or record.kind == "build":
                continue
            digests = [file.sha256 for file in model.files]
            built = next((self.places[one] for one in digests if one in self.places), None)
            source = next((self.sources[one] for one in digests if one in self.sources), None)
            for target in record.targets:
                if built is not None:
                    yield built[0], target, built[2]
                else:
                    yield source or self.key(model.name), target, AS_IT_CAME

    def models(self) -> tuple[OverviewModel, ...]:
        found: dict[str, list[OverviewCell]] = {}
        for cell in self.cells.values():
            found.setdefault(cell.model, []).append(cell)
        order = {target: place for place, target in enumerate(_in_order({cell.target for cell in self.cells.values()}))}
        return tuple(
            OverviewModel(
                key,
                self.titles[key],
                tuple(sorted(cells, key=lambda cell: (order[cell.target], cell.precision))),
                task=self.tasks.get(key),
                identity=self.identities.get(key),
            )
            for key, cells in sorted(found.items(), key=self._rank)
        )

    def _rank(self, found: tuple[str, list[OverviewCell]]) -> tuple[bool, str]:
        """What was built or refused for a target comes before what was only looked at; each by name."""
        key, cells = found
        return all(cell.state == NOT_BUILT for cell in cells), self.titles[key].casefold()


def _with_entry(model: OverviewModel, rows: Iterable[IndexRow]) -> OverviewModel:
    """Where the catalogue has an entry for this very content, what it says of it."""
    mine = [row for row in rows if model.identity in (row.pin, f"hf:{row.source}@{row.pin}")]
    if not mine:
        return model
    levels = {row.target: row.level for row in mine}
    cells = tuple(replace(cell, level=levels.get(cell.target)) for cell in model.cells)
    return replace(model, cells=cells, licence=mine[0].licence, entry=mine[0].entry, task=model.task or mine[0].task)


def title_of(name: str) -> str:
    """As people call it: an id as it is, of a path the last word."""
    path = PurePosixPath(name.replace("\\", "/"))
    parts = [part for part in path.parts if part not in (".", "..", "~", "/")]
    if path.suffix.lower() == ".onnx" and parts:
        parts[-1] = path.stem
        if parts[-1] == "model" and len(parts) > 1:  # the folder says more
            parts = parts[:-1]
    return "/".join(parts[-1:] if path.is_absolute() or len(parts) > 2 else parts) or name


def slug(title: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", title.casefold()).strip("-.") or "model"


def _matrices(store: Store) -> tuple[list[CellStatus], tuple[MatrixOrder, ...]]:
    """Every cell that any matrix of this store asked for, as it stands; and those matrices, the newest first."""
    ledger = store.ledger()
    try:
        asked = farm.every_order(ledger)
        cells = {cell.id: cell for _, order in asked for cell in order.cells}
        now = farm.statuses(tuple(cells.values()), ledger)
    finally:
        ledger.close()
    orders = [_order(event, order.given, [now[cell.id] for cell in order.cells]) for event, order in reversed(asked)]
    found = tuple(replace(order, last=place == 0) for place, order in enumerate(orders))
    return list(now.values()), found


def _order(event: LedgerEvent, given: Any, cells: list[CellStatus]) -> MatrixOrder:
    return MatrixOrder(
        at=datetime.fromtimestamp(event.at, UTC).isoformat(timespec="seconds"),
        models=len({one.cell.model for one in cells}),
        targets=tuple(dict.fromkeys(one.cell.target for one in cells)),
        counts=tuple(Counter(one.words for one in cells).most_common()),
        feed=given.get("to"),
        last=False,
    )
