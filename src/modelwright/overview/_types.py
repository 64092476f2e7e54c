"""Models, their cells and where each number comes from."""

from __future__ import annotations

from typing import Any, ClassVar

from modelwright._dataclass import dataclass
from modelwright._json import plain
from modelwright.evidence import RecordLine
from modelwright.farm import CellFailure
from modelwright.knowledge import Standing
from modelwright.recipes import IndexRow
from modelwright.vocabulary import Result

AS_IT_CAME = "as it came"
"""What is said where the precision of a build would be: the model itself."""


@dataclass(frozen=True)
class Sourced:
    """A number, its unit and who says so: `record` is the id of a record, or what `origin` calls it. None comes with a
    `reason`. `low` and `high` are its bounds, with what they are bounds of in `about`."""

    value: float | None
    unit: str = ""
    record: str | None = None
    origin: str = "record"
    low: float | None = None
    high: float | None = None
    about: str = ""
    reason: str | None = None


UNKNOWN = Sourced(None, reason="nobody asked")


@dataclass(frozen=True)
class OverviewCell:
    """One model on one target in one precision. `state` is in the words of a matrix; `placed` how many of `nodes` the
    target took. `records` are all that are about it, the newest first; `command` makes it again."""

    model: str
    target: str
    precision: str
    state: str
    size: Sourced = UNKNOWN
    cosine: Sourced = UNKNOWN
    placed: Sourced = UNKNOWN
    nodes: Sourced = UNKNOWN
    latency: Sourced = UNKNOWN
    accuracy: Sourced = UNKNOWN
    reference: Sourced = UNKNOWN
    simulated: bool = False
    level: str | None = None
    failure: CellFailure | None = None
    note: str | None = None
    records: tuple[str, ...] = ()
    command: str | None = None
    made_at: str | None = None
    recipe: str | None = None

    @property
    def id(self) -> str:
        return f"{self.model}--{self.target}--{self.precision}".replace(" ", "-").replace(":", "-").replace("=", "-")


@dataclass(frozen=True)
class SourcedRecord:
    """A record as lists show it; `about` are the models that it is about, by key."""

    line: RecordLine
    about: tuple[str, ...]
    headline: Sourced | None = None
    environment: str = ""


@dataclass(frozen=True)
class OverviewModel:
    """`key` is a name for files, `identity` the content that it was built from, where a build says so. `licence` and
    `entry` are those of the catalogue, where it has one for it."""

    key: str
    title: str
    cells: tuple[OverviewCell, ...]
    task: str | None = None
    licence: str | None = None
    entry: str | None = None
    identity: str | None = None


@dataclass(frozen=True)
class MatrixOrder:
    """A matrix that was asked for: when, how many cells, and what they came to."""

    at: str
    models: int
    targets: tuple[str, ...]
    counts: tuple[tuple[str, int], ...]
    feed: str | None
    last: bool


@dataclass(frozen=True)
class Overview(Result):
    """Everything there is to show, and when it was gathered. `left` records were too many to be read."""

    kind: ClassVar[str] = "site"

    made_at: str
    targets: tuple[str, ...]
    models: tuple[OverviewModel, ...]
    records: tuple[SourcedRecord, ...]
    support: tuple[IndexRow, ...]
    findings: tuple[Standing, ...]
    orders: tuple[MatrixOrder, ...]
    left: int = 0

    @property
    def cells(self) -> tuple[OverviewCell, ...]:
        return tuple(cell for model in self.models for cell in model.cells)

    def content(self) -> dict[str, Any]:
        """Of a finding what people read; its evidence is named, not repeated."""
        shown = plain(
            {name: getattr(self, name) for name in ("made_at", "targets", "models", "records", "support", "orders")}
        )
        return {**shown, "left": self.left, "findings": [_finding(one) for one in self.findings]}


def _finding(one: Standing) -> dict[str, Any]:
    known = one.finding
    return {
        "id": known.id,
        "says": known.says,
        "kind": known.kind,
        "target": known.target,
        "changes": list(known.changes),
        "status": one.status,
        "why": one.why,
        "rung": one.rung,
        "agreeing": len(one.agreeing),
        "contradicting": len(one.contradicting),
        "evidence": list(known.evidence),
    }
