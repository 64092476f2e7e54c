"""Evidence: records by their id, and what each of them observed."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from modelwright.errors import WrightError
from modelwright.evidence import Record, parse_record, read_record
from modelwright.knowledge._types import ExperimentResult, Observation
from modelwright.store import Store

_EVIDENCE = "evidence"
_BASELINE = "baseline"
_PLACED = {"placement": "displaced"}


class Evidence:
    """Records that came with the package, and those of a store. What is not there or was changed is None."""

    def __init__(self, store: Store | None = None, shipped: Path | None = None) -> None:
        self._store = store
        self._shipped = shipped or Path(__file__).with_name(_EVIDENCE)
        self._problems: dict[str, str] = {}

    def record(self, name: str) -> Record[Any] | None:
        return self._read(name)

    def problem(self, name: str) -> str | None:
        """Why a record cannot be used; None where it can."""
        self._read(name)
        return self._problems.get(name)

    @functools.cache  # noqa: B019 - as long as the evidence itself
    def _read(self, name: str) -> Record[Any] | None:
        """The id is the digest of the content, so whoever has one record under its name has the right one."""
        file = self._shipped / f"{name}.json"
        try:
            found = self._found(name, file)
        except WrightError as error:
            self._problems[name] = error.cause
            return None
        if found.id != name:
            self._problems[name] = "it was edited: its content is that of another record"
            return None
        return found

    def _found(self, name: str, file: Path) -> Record[Any]:
        if file.is_file():
            return parse_record(file.read_bytes(), name[:12], _payload)
        if self._store is None:
            raise WrightError("no such record", cause="it is not among the records of the package", fix="")
        return read_record(name, self._store, _payload)

    @functools.cache  # noqa: B019 - as long as the evidence itself
    def observations(self, name: str) -> tuple[Observation, ...]:
        found = self.record(name)
        return () if found is None else tuple(_observations(found))


def _payload(kind: str) -> type | None:
    """Experiments are ours; of other answers only what is needed is read, as it was written."""
    return ExperimentResult if kind == ExperimentResult.kind else dict


def _observations(record: Record[Any]) -> Iterator[Observation]:
    if isinstance(record.payload, ExperimentResult):
        yield _of_experiment(record, record.payload)
    elif record.kind == "tune":
        yield from _of_tune(record, record.payload)


def _of_experiment(record: Record[Any], found: ExperimentResult) -> Observation:
    verdict = found.speed.by[0] if found.speed is not None else None
    sides = (found.base, found.arm)
    left = tuple(sum(side.left.values()) for side in sides if side is not None and side.left is not None)
    return Observation(
        record=record.id,
        change=found.change,
        target=found.target,
        model=found.model,
        mark=found.base.fingerprint if found.base is not None else found.model,
        family=found.family,
        word=found.word,
        builds=min((len(side.builds) for side in sides if side is not None), default=0),
        simulated=found.simulated,
        versions=record.environment.packages,
        cpu=record.environment.host.cpu.features,
        effect=_log(verdict.effect) if verdict else None,
        low=_log(verdict.low) if verdict else None,
        high=_log(verdict.high) if verdict else None,
        units=verdict.units if verdict else 0,
        left=(left[0], left[1]) if len(left) == 2 else None,
    )


def _of_tune(record: Record[Any], found: Mapping[str, Any]) -> Iterator[Observation]:
    """The champion, which was built anew and judged on fresh units, and what placement put out. What was only screened
    was never claimed."""
    rows = {row["label"]: row for row in found.get("rows", ())}
    base_left = rows.get(_BASELINE, {}).get("left_nodes")
    # What was proven of energy is no finding about speed.
    speed = found.get("limits", {}).get("objective") != "energy"
    for label, row in rows.items():
        champion = label == found.get("champion") and found.get("finding") is not None and speed
        displaced = row["word"] == "placement" and base_left is not None
        if label == _BASELINE or not (champion or displaced):
            continue
        yield Observation(
            record=record.id,
            change=label,
            target=str(found["target"]),
            model=Path(str(found["model"])).stem,
            mark=str(found.get("mark") or record.models[0].files),
            family=found.get("family"),
            word=_PLACED.get(row["word"], row["word"]),
            builds=2 if champion else 1,
            simulated=not found["timed"],
            versions=record.environment.packages,
            cpu=record.environment.host.cpu.features,
            effect=_log(row["effect"]),
            low=_log(row["low"]),
            high=_log(row["high"]),
            units=row["units"],
            left=(base_left, row["left_nodes"]) if displaced else None,
        )


def _log(ratio: float | None) -> float | None:
    """Effects are kept as ratios minus one; findings add up as logarithms."""
    return None if ratio is None or ratio <= -1 else math.log1p(ratio)
