"""What a matrix came to, and what it would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from modelwright._dataclass import dataclass
from modelwright._json import plain
from modelwright.farm._budget import DiskUse
from modelwright.farm._cells import MatrixCell, find_cell
from modelwright.farm._states import CellStatus
from modelwright.pipeline import PlannedStage
from modelwright.vocabulary import HasPage, Result, weakest

REPORT_VERSION = 1
MATRIX_PAGE, MODEL_PAGE = "matrix.html", "model.html"


@dataclass(frozen=True)
class MatrixTotals:
    """`stages` is how often each stage ran for this, whoever shares what it made; `cpu_seconds` what that took.

    `separate_bytes` is what the builds hold when each stands in a folder of its own."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    stages: Mapping[str, int] = field(default_factory=dict)
    separate_bytes: int = 0


@dataclass(frozen=True)
class MatrixResult(Result):
    """Every cell as it stands. `disk` and `totals` are of the run that gives this answer, null where none does."""

    kind: ClassVar[str] = "matrix"

    cells: tuple[CellStatus, ...]
    feed: str | None = None
    folder: str | None = None
    totals: MatrixTotals | None = None
    disk: DiskUse | None = None
    report_version: int = REPORT_VERSION

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(status.cell.target for status in self.cells))

    @property
    def counts(self) -> Mapping[str, int]:
        """Cells by what they are now."""
        return Counter(status.words for status in self.cells)

    @property
    def open(self) -> tuple[CellStatus, ...]:
        """Cells on which somebody works, or should."""
        at_work = ("pending", "leased", "building", "uploading")
        return tuple(status for status in self.cells if status.state in at_work)

    @property
    def failed(self) -> tuple[CellStatus, ...]:
        return tuple(status for status in self.cells if status.state == "failed")

    @property
    def passed(self) -> bool | None:
        """Whether every cell is validated, and published where there is a feed. None: some could not be judged, or are
        still to be done."""
        good = "published" if self.feed is not None else "validated"
        answers = (_answer(status, good) for status in self.cells)
        return weakest(answers)

    def find(self, model: str, target: str) -> tuple[CellStatus, ...]:
        """Those of a model and a target, in whatever precision."""
        wanted = find_cell([status.cell for status in self.cells], model, target)
        return tuple(status for status in self.cells if status.cell in wanted)

    @property
    def models(self) -> tuple[MatrixModel, ...]:
        """The rows of the matrix: a model in one precision each."""
        found: dict[str, list[CellStatus]] = {}
        for status in self.cells:
            found.setdefault(_folder(status), []).append(status)
        return tuple(MatrixModel(folder, tuple(cells)) for folder, cells in found.items())

    def save_pages(self, folder: str | Path) -> Path:
        """Write the page as matrix.html, with a link to a page of every model, which stands in the model's folder."""
        place = Path(folder)
        for model in self.models:
            (place / model.folder).mkdir(parents=True, exist_ok=True)
            model.save_page(place / model.folder / MODEL_PAGE)
        return LinkedMatrix(self).save_page(place / MATRIX_PAGE)

    def content(self) -> dict[str, Any]:
        return {"passed": self.passed, "counts": dict(self.counts), "targets": list(self.targets), **plain(self)}

    def __iter__(self) -> Iterator[CellStatus]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)


@dataclass(frozen=True)
class MatrixModel(HasPage):
    """One model for all its targets. `folder` is where its builds stand, seen from that of the matrix."""

    folder: str
    cells: tuple[CellStatus, ...]

    @property
    def name(self) -> str:
        return self.cells[0].cell.model

    @property
    def asked(self) -> str | None:
        return self.cells[0].cell.asked

    @property
    def passed(self) -> bool | None:
        """Is every cell good? None: some could not be judged, or are still to be done."""
        return weakest(_answer(status, "validated") for status in self.cells)


@dataclass(frozen=True)
class LinkedMatrix(HasPage):
    """A matrix whose models have pages of their own beside its own."""

    result: MatrixResult


def _folder(status: CellStatus) -> str:
    return status.cell.slug.partition("/")[0]


def _answer(status: CellStatus, good: str) -> bool | None:
    if status.state == "failed":
        return False
    return True if status.state in (good, "published") else None


@dataclass(frozen=True)
class PlannedCell:
    """`state`: finished or failed in an earlier run, refused for `why`, or `run`: to be done by `stages`."""

    cell: MatrixCell
    state: str
    precision: str | None = None
    why: str | None = None
    stages: tuple[PlannedStage, ...] = ()


@dataclass(frozen=True)
class SharedWork:
    """How often a stage is done for the matrix, beside how often it would be if every cell were built alone."""

    stage: str
    distinct: int
    alone: int


@dataclass(frozen=True)
class MatrixPlan(Result):
    """What a matrix would do. Nothing was run and nothing was written."""

    kind: ClassVar[str] = "matrix"

    cells: tuple[PlannedCell, ...]
    shared: tuple[SharedWork, ...]
    models: int
    disk_bytes: int | None = None
