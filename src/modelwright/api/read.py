"""`modelwright.read` and `modelwright.open_build`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modelwright import evidence, models
from modelwright.api._kinds import payload_of
from modelwright.api._opened import opened
from modelwright.evidence import Record
from modelwright.models import BuildFolder
from modelwright.store import Store
from modelwright.vocabulary import Result


def read(record: str | Path, *, store: Store | None = None) -> Record[Any]:
    """A record by the name of its file, or by the beginning of its id; the answer in it is typed."""
    with opened(store) as place:
        found = evidence.read_record(record, place, payload_of)
    if isinstance(found.payload, Result):
        # Saved again it is the same record.
        object.__setattr__(found.payload, "record_id", found.id)
        object.__setattr__(found.payload, "record_text", found.text)
    return found


def open_build(folder: str | Path) -> BuildFolder:
    """A folder that a build wrote, if every file of it still is what was built."""
    return models.read_build(Path(folder))
