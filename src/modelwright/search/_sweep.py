"""Many searches: what each came to, in one answer."""

from __future__ import annotations

from typing import ClassVar

from modelwright._dataclass import dataclass
from modelwright.search._portfolio import Portfolio
from modelwright.search._types import TuneResult
from modelwright.vocabulary import Result


@dataclass(frozen=True)
class SearchFailure:
    """Why a search has no answer, and what to do next; `exit_code` is that of its error."""

    problem: str
    cause: str
    fix: str
    exit_code: int


@dataclass(frozen=True)
class SweepRow:
    """One model for one target. `fresh` is false where an earlier search had said all there is, `record` is where its
    answer is kept; without a `result` there is a `failure`. `note` says what of its row the target cannot have."""

    name: str
    target: str
    result: TuneResult | None
    failure: SearchFailure | None
    fresh: bool
    record: str | None = None
    note: str | None = None


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C; `partial` is what was found. The same call goes on from there."""

    partial: TuneSweep


@dataclass(frozen=True)
class TuneSweep(Result):
    """`portfolios` answer for each model what to take for several targets; `asked` is how many searches there are to
    be, of which `rows` have come to an end."""

    kind: ClassVar[str] = "sweep"

    rows: tuple[SweepRow, ...]
    portfolios: tuple[Portfolio, ...]
    spent_s: float
    asked: int

    @property
    def failed(self) -> int:
        return sum(row.result is None for row in self.rows)
