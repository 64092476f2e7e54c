"""Which level the evidence of an entry shows, on which target, and whether it is about this entry at all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright.errors import WrightError
from modelwright.recipes._entry import EVIDENCE_FILE, RECIPE_FILE, CatalogEntry
from modelwright.support import (
    CLAIM,
    LEVELS,
    Claim,
    EvidenceFile,
    SupportRun,
    audit,
    read_claim,
    read_evidence,
    recorded_run,
    this_tool,
)
from modelwright.targets import parse_target

OLDEST = timedelta(days=365)
# That another version of the tool made it is no flaw of an entry: a review makes it again.
_OF_THE_TOOL = ("tool",)


@dataclass(frozen=True)
class ShownLevel:
    """`on` is the day of the last statement."""

    level: str | None
    on: str


def shown_level(entry: CatalogEntry, target: str) -> ShownLevel | None:
    """None where nothing is on record, or what is cannot be read."""
    try:
        found = _records(entry.folder)
    except WrightError:
        return None
    if found is None or not found[1].statements:
        return None
    _, evidence, run = found
    wanted = str(parse_target(target))
    mine = [row for row in run.rows if row.target == wanted]
    reached: str | None = None
    for level in LEVELS:
        rows = [row for row in mine if row.level == level]
        if not rows or any(row.word != "pass" for row in rows):
            break
        reached = level
    return ShownLevel(reached, max(one.predicate.made_at for one in evidence.statements)[:10])


def _records(path: Path) -> tuple[Claim, EvidenceFile, SupportRun] | None:
    if not (path / EVIDENCE_FILE).is_file():
        return None
    claim, evidence = read_claim(path), read_evidence(path)
    return claim, evidence, recorded_run(claim, evidence, path.name)


def evidence_problems(entry: CatalogEntry, today: date) -> Iterator[str]:
    """Why what it says of itself does not follow from its evidence."""
    said = entry.said
    found = _records(entry.folder)
    if found is None:
        if (entry.folder / CLAIM).is_file():
            yield "there is a claim, and no evidence"
        if said.level is not None and said.evidence is None:
            yield f"it says {said.level}, and there is no evidence"
        return
    claim, evidence, _ = found
    if said.evidence is not None:
        yield "its evidence is here: the digest of one elsewhere says nothing"
    if claim.source.digest != entry.identity():
        yield f"the evidence is about another source ({claim.source.digest[:19]}…)"
    recipe = entry.folder / RECIPE_FILE
    here = hashlib.sha256(recipe.read_bytes()).hexdigest() if recipe.is_file() else None
    if here != (claim.recipe.digest if claim.recipe is not None else None):
        yield "the evidence is about another recipe"
    for one in audit(claim, evidence, entry.folder, this_tool()):
        if one.rule not in _OF_THE_TOOL:
            yield f"{one.row}: {one.reason}" if one.row else one.reason
    yield from _levels(entry, today)


def _levels(entry: CatalogEntry, today: date) -> Iterator[str]:
    shown = [shown_level(entry, target) for target in entry.said.targets]
    dates = [one.on for one in shown if one is not None]
    if dates and today - date.fromisoformat(min(dates)) > OLDEST:
        yield f"the evidence is of {min(dates)}: what it shows was long ago"
    order = (None, *LEVELS)
    least = min((None if one is None else one.level for one in shown), key=order.index, default=None)
    if entry.said.level != least:
        yield f"it says {entry.said.level or 'no level'}, and its evidence shows {least or 'none'} on every target"
