"""The smallest model that still fails so: operators are left out while the same error stays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.answers._gather import Complaint, Gathered, Refused, attempt
from modelwright.answers._log import read_lines
from modelwright.answers._types import SmallestModel
from modelwright.graph import model_bytes
from modelwright.measure import InputChoice
from modelwright.stages.check import Cuttable, told

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

_LARGEST = 256 << 20
_TRIES = 60
Places = tuple[int, ...]


def reduced(found: Gathered, folder: Path, path: Path) -> SmallestModel | None:
    """Written to `path`; None where there is nothing to cut, or where cutting loses the symptom."""
    if found.unreadable is not None or model_bytes(found.complaint.model) > _LARGEST:
        return None
    symptom = _symptom(found.complaint)
    if symptom is None:
        return None
    cutting = _Cutting(found.complaint, symptom, folder, path)
    return cutting.result() if cutting.shows(cutting.all) else None


def _symptom(complaint: Complaint) -> str | None:
    """What is kept while cutting: the kind of error, or answers that are no numbers."""
    outcome = attempt(complaint)
    if isinstance(outcome, Refused):
        known = next(iter(read_lines([outcome.cause]).causes), None)
        return known.id if known is not None else outcome.problem
    return "not finite" if outcome.not_finite else None


class _Cutting:
    """Delta debugging over the operators: ever smaller pieces are left out, until no single one can be."""

    def __init__(self, complaint: Complaint, symptom: str, folder: Path, path: Path) -> None:
        self._complaint, self._symptom, self._folder, self._path = complaint, symptom, folder, path
        self._model = Cuttable(onnx.load(complaint.model))
        self.all: Places = tuple(range(len(self._model.operators)))
        self._seen: dict[Places, bool] = {}

    def shows(self, places: Places) -> bool:
        if places not in self._seen:
            self._seen[places] = bool(places) and len(self._seen) < _TRIES and self._tried(places)
        return self._seen[places]

    def result(self) -> SmallestModel:
        places = self._cut(self.all)
        self._write(places, self._path)
        return SmallestModel(
            path=str(self._path),
            operators=tuple(told(self._model.operators[place]) for place in places),
            of=len(self.all),
            symptom=self._symptom,
            minimal=all(not self.shows(fewer) for fewer in _without_each(places)) and len(self._seen) < _TRIES,
            tries=len(self._seen),
            digest=hashlib.sha256(self._path.read_bytes()).hexdigest(),
        )

    def _cut(self, places: Places) -> Places:
        size = len(places) // 2
        while size:
            kept = next((fewer for fewer in _without_pieces(places, size) if self.shows(fewer)), None)
            if kept is None:
                size //= 2
            else:
                places, size = kept, min(size, max(1, len(kept) // 2))
        return places

    def _tried(self, places: Places) -> bool:
        trial = self._folder / "trial.onnx"
        if not self._write(places, trial):
            return False
        inputs = InputChoice(recorded=self._model.feeds(onnx.load(trial)))
        outcome = _symptom(replace(self._complaint, model=trial, inputs=inputs))
        trial.unlink()
        return outcome == self._symptom

    def _write(self, places: Places, path: Path) -> bool:
        part = self._model.part([self._model.operators[place] for place in places])
        if part is not None:
            onnx.save(part, path)
        return part is not None


def _without_pieces(places: Places, size: int) -> Iterator[Places]:
    """From the end: what comes first is what the rest needs."""
    for start in range(len(places) - size, -size, -size):
        yield (*places[: max(start, 0)], *places[start + size :])


def _without_each(places: Places) -> Iterator[Places]:
    return _without_pieces(places, 1) if len(places) > 1 else iter(())
