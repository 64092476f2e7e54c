"""Many models in one file: a row for each, and each ends in a state."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright._typed import MisfitError, typed
from modelwright.errors import InputError, StoreError, WrightError, did_you_mean
from modelwright.models import SourceChoices
from modelwright.support._case import told
from modelwright.support._freeze import SupportWish
from modelwright.support._types import BatchRow, SupportBatch, SupportRun
from modelwright.support._words import Effort, Level, Outcome
from modelwright.vocabulary import Data

NO, UNKNOWN = 1, 6


@dataclass(frozen=True, kw_only=True)
class BatchModel:
    """One row, as it is written: what `wright support run` is told, by the same names."""

    model: str
    name: str | None = None
    task: str | None = None
    revision: str | None = None
    random_weights: bool = False
    trust_remote_code: bool = False
    recipe: str | None = None
    family: str | None = None
    targets: tuple[str, ...] = ("cpu",)
    precisions: tuple[str, ...] = ()
    ceiling: Level = "L2"
    effort: Effort | None = None
    outcome: Outcome | None = None
    data: Data | str | None = None
    metric: str | None = None
    max_drop: str | None = None
    max_p50_ms: float | None = None
    faster: bool = False
    seeds: int = 5

    @property
    def title(self) -> str:
        words = self.name or Path(self.model).name
        return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in words)

    def wish(self) -> SupportWish:
        about = SourceChoices(self.task, self.revision, self.trust_remote_code, self.random_weights)
        return SupportWish(
            model=self.model,
            about=about,
            recipe=None if self.recipe is None else Path(self.recipe),
            family=self.family,
            targets=self.targets,
            precisions=self.precisions,
            ceiling=self.ceiling,
            effort=self.effort,
            outcome=self.outcome,
            data=Data(self.data) if isinstance(self.data, str) else self.data,
            metric=self.metric,
            max_drop=self.max_drop,
            max_p50_ms=self.max_p50_ms,
            faster=self.faster,
            seeds=self.seeds,
        )


@dataclass(frozen=True)
class _BatchFile:
    models: tuple[BatchModel, ...]


def read_batch(path: Path) -> tuple[BatchModel, ...]:
    """Tables `[[models]]`; a table `[defaults]` holds for all. Paths are seen from the file."""
    try:
        form: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read as a list", cause=str(error), fix="see docs/adding-a-model.md"
        ) from None
    defaults = form.pop("defaults", {})
    try:
        rows = [{**defaults, **row} for row in form.get("models", ())]
        found = typed(_BatchFile, {**form, "models": rows}, strict=True).models
    except (MisfitError, TypeError) as error:
        known = error.known if isinstance(error, MisfitError) else ()
        word = str(error.place[-1]) if isinstance(error, MisfitError) and error.place else ""
        fix = did_you_mean(word, known) or "see docs/adding-a-model.md"
        raise InputError(f"{path} is not right", cause=str(error), fix=fix) from None
    found = tuple(_placed(row, path.parent) for row in found)
    titles = [row.title for row in found]
    twice = next((title for title in titles if titles.count(title) > 1), None)
    if twice is not None or not found:
        cause = f"'{twice}' is there twice" if twice else "it has no [[models]]"
        raise InputError(f"{path} is not right", cause=cause, fix="give each a name of its own")
    return found


def _placed(row: BatchModel, folder: Path) -> BatchModel:
    """Files are named as seen from the list; a name that is no file there stays what it is."""

    def at(name: str | None) -> str | None:
        return name if name is None or not (folder / name).exists() else str(folder / name)

    data = row.data
    if isinstance(data, Data):
        data = replace(data, source=at(data.source) or data.source, labels=at(data.labels))
    elif data is not None:
        data = at(data)
    family = at(row.family)
    return replace(row, model=at(row.model) or row.model, recipe=at(row.recipe), family=family, data=data)


def run_batch(
    rows: tuple[BatchModel, ...], output: Path, run: Callable[[SupportWish, Path], SupportRun]
) -> SupportBatch:
    """One after the other; what is wrong with one row is its state, and does not stop the others."""
    return SupportBatch(tuple(_ended(row, output / row.title, run) for row in rows))


def _ended(row: BatchModel, folder: Path, run: Callable[[SupportWish, Path], SupportRun]) -> BatchRow:
    try:
        found = run(row.wish(), folder)
    except StoreError:
        raise  # a full disk is the same for all that come after
    except WrightError as error:
        # Bad input is no work of ours that failed: it is not reached.
        return BatchRow(row.title, str(folder), "not-reached", None, row.ceiling, None, told(error), error.exit_code)
    codes: Mapping[bool | None, int] = {True: 0, False: NO, None: UNKNOWN}
    worst = next((one for one in found.rows if one.word == found.state and one.word != "pass"), None)
    why = None if worst is None else f"{worst.level}: {'; '.join(worst.reasons)}"
    gate = None if found.gate is None else found.gate.word
    return BatchRow(row.title, str(folder), found.state, found.reached, row.ceiling, gate, why, codes[found.claim_met])
