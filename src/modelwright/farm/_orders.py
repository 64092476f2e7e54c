"""What the last matrix of a store was about: for whoever asks how it stands, and to try again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from modelwright._dataclass import dataclass
from modelwright._json import digest, plain
from modelwright._typed import typed
from modelwright.errors import UsageError
from modelwright.farm._cells import MatrixCell
from modelwright.store import Ledger, LedgerEvent

_ITEM = "matrix"
_ASKED = "asked"


@dataclass(frozen=True)
class MatrixRecall:
    """`given` is what the verb was called with."""

    cells: tuple[MatrixCell, ...]
    given: Mapping[str, Any]


def note_order(ledger: Ledger, cells: Sequence[MatrixCell], given: Mapping[str, Any]) -> None:
    """Once: a run that is gone on with asks for the same."""
    asked = plain(dict(given))
    mark = digest([[cell.id for cell in cells], asked])
    last = ledger.last(_ITEM)
    if last is None or last.note.get("mark") != mark:
        ledger.append(_ITEM, _ASKED, {"cells": [plain(cell) for cell in cells], "given": asked, "mark": mark})


def last_order(ledger: Ledger) -> MatrixRecall:
    last = ledger.last(_ITEM)
    if last is None:
        raise UsageError(
            "there is no matrix to tell about",
            cause="none was run with this store",
            fix="wright matrix run models.json, with the same MODELWRIGHT_HOME",
        )
    return _recalled(last)


def every_order(ledger: Ledger) -> tuple[tuple[LedgerEvent, MatrixRecall], ...]:
    """Every matrix that was asked for, the oldest first."""
    return tuple((event, _recalled(event)) for event in ledger.events(_ITEM) if event.state == _ASKED)


def _recalled(event: LedgerEvent) -> MatrixRecall:
    cells = tuple(typed(MatrixCell, cell) for cell in event.note["cells"])
    return MatrixRecall(cells, dict(event.note["given"]))
