"""Many searches: what each came to, in one answer."""

from __future__ import annotations

from typing import ClassVar

from modelwright._dataclass import dataclass
from modelwright.search._portfolio import Portfolio
from modelwright.search._types import TuneResult
from modelwright.vocabulary import Result


@dataclass(frozen=True)
class SweepRow:
    """One model for one target. `fresh` is false where an earlier search had said all there is; without a `result`
    `problem` says why."""

    name: str
    target: str
    result: TuneResult | None
    problem: str | None
    fresh: bool


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C; `partial` is what was found. The same call goes on from there."""

    partial: TuneSweep


@dataclass(frozen=True)
class TuneSweep(Result):
    """`portfolios` answer for each model what to take for several targets."""

    kind: ClassVar[str] = "sweep"

    rows: tuple[SweepRow, ...]
    portfolios: tuple[Portfolio, ...]
    spent_s: float

    @property
    def failed(self) -> int:
        return sum(row.result is None for row in self.rows)
