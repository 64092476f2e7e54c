"""What the catalogue has, in one table: computed from its entries, never written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal

from modelwright._dataclass import dataclass
from modelwright._json import dumps
from modelwright.errors import WrightError
from modelwright.recipes._entry import CatalogEntry, read_entries
from modelwright.recipes._lint import resolved
from modelwright.recipes._shown import shown_level
from modelwright.targets import parse_target
from modelwright.vocabulary import Result

INDEX_FILE = "index.json"


@dataclass(frozen=True)
class IndexRow:
    """One entry on one target. `level` is None where nothing is shown of it; then `shown_on` is too."""

    entry: str
    family: str | None
    task: str | None
    source: str
    pin: str
    licence: str
    target: str
    precision: str | None
    level: str | None
    shown_on: str | None
    known_bad: str | None


@dataclass(frozen=True)
class CatalogIndex(Result):
    """`state` says what became of the file: `written`, `as it was`, or with a check `stale`."""

    kind: ClassVar[str] = "catalog index"

    rows: tuple[IndexRow, ...]
    state: Literal["written", "as it was", "stale"]


def index_rows(folder: Path) -> tuple[IndexRow, ...]:
    return tuple(row for entry in read_entries(folder) for row in entry_rows(entry))


def entry_rows(entry: CatalogEntry) -> Iterator[IndexRow]:
    said, bad = entry.said, entry.said.known_bad
    family, task = said.model_type, said.task
    if entry.kind == "folder":
        source = entry.local_source()
        family, task = source.model_type, source.task
    for target, precision in _precisions(entry):
        shown = shown_level(entry, target)
        yield IndexRow(
            entry=entry.name,
            family=family,
            task=task,
            source=said.source,
            pin=said.pin,
            licence=said.licence,
            target=target,
            precision=precision,
            level=shown.level if shown is not None else None,
            shown_on=shown.on if shown is not None and shown.level is not None else None,
            known_bad=None if bad is None else f"{bad.reason} (until {bad.until})",
        )


def _precisions(entry: CatalogEntry) -> Iterator[tuple[str, str | None]]:
    """Of a file that is not here, only what the recipe says."""
    targets = [str(parse_target(target)) for target in entry.said.targets]
    try:
        found = resolved(entry)
    except WrightError:
        found = ()
    if len(found) == len(targets) and not entry.is_graph:
        yield from ((target, recipe.precision) for target, recipe in zip(targets, found, strict=True))
    else:
        yield from ((target, found[0].precision or None if found else None) for target in targets)


def index_text(rows: tuple[IndexRow, ...]) -> str:
    return dumps({"schema_version": 1, "rows": rows}) + "\n"


def write_index(folder: Path, *, check: bool) -> CatalogIndex:
    """Only looks where `check` is said."""
    rows, path = index_rows(folder), folder / INDEX_FILE
    same = path.is_file() and path.read_text(encoding="utf-8") == index_text(rows)
    if same or check:
        return CatalogIndex(rows, "as it was" if same else "stale")
    path.write_text(index_text(rows), encoding="utf-8")
    return CatalogIndex(rows, "written")
