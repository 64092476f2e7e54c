"""What support answers: rows, the gate, a run, a batch."""

from __future__ import annotations

from typing import Any, ClassVar

from modelwright._dataclass import dataclass
from modelwright.support._claim import Claim
from modelwright.support._words import BlockedBy, GateWord, Level, RowWord, worst_row
from modelwright.vocabulary import Result


@dataclass(frozen=True)
class LadderRow:
    """One level, for one case and component (None: the whole). `by` is the function that gave the word, with its
    version; `statements` are the ids that it rests on. A `blocked` row says by what."""

    level: Level
    target: str
    precision: str
    component: str | None
    word: RowWord
    by: str
    reasons: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    blocked_by: BlockedBy | None = None


@dataclass(frozen=True)
class ArmCount:
    """`works` of `runs` seeds came to a build. `fails_below` is what the share of failures is below, with 95 %
    confidence; `graphs` is how many different ones the seeds gave."""

    name: str
    works: int
    runs: int
    fails_below: float
    graphs: int
    failure: str | None = None


@dataclass(frozen=True)
class GateResult(Result):
    """`arms` are the tool without the contribution, with and without its task, and with it. `differs` is what differs
    by effect, and `differing` the cases that do; `inert` are fields that were given and change nothing."""

    kind: ClassVar[str] = "support gate"

    word: GateWord
    by: str
    reasons: tuple[str, ...]
    arms: tuple[ArmCount, ...]
    differs: tuple[str, ...] = ()
    inert: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    claim: str | None = None
    folder: str | None = None
    differing: tuple[str, ...] = ()


@dataclass(frozen=True)
class SupportRun(Result):
    """`rows` of the contribution (or of the tool as it is), every level up to the ceiling. `base` are the same rows
    without the contribution, where the gate says `delta`: the gain is what they do not reach."""

    kind: ClassVar[str] = "support run"

    claim: Claim
    claim_digest: str
    folder: str
    gate: GateResult | None
    rows: tuple[LadderRow, ...]
    base: tuple[LadderRow, ...] = ()
    gain: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def state(self) -> RowWord:
        """Of the whole: a level that fails decides, then one that is open."""
        return worst_row(row.word for row in self.rows)

    @property
    def reached(self) -> Level | None:
        """The highest level up to which every row passes; a blocked one shows nothing."""
        found: Level | None = None
        for level in dict.fromkeys(row.level for row in self.rows):
            if any(row.word != "pass" for row in self.rows if row.level == level):
                break
            found = level
        return found

    @property
    def claim_met(self) -> bool | None:
        """Whether what was claimed is shown; None where something is open, or could not be measured here."""
        if self.state in ("fail", "not-reached"):
            return False
        if self.gate is not None and not gate_fits(self.claim.outcome, self.gate.word):
            return False
        if self.gate is not None and self.gate.word == "delta" and self.gain is None:
            return None
        return True if self.state == "pass" else None

    def content(self) -> dict[str, Any]:
        shown = {"state": self.state, "reached": self.reached, "claim_met": self.claim_met}
        return {**shown, **super().content()}

    def whole(self) -> Any:
        return super().content()


@dataclass(frozen=True)
class BatchRow:
    """One model of a batch: its state is that of its run, or why it came to none."""

    name: str
    folder: str
    state: RowWord
    reached: Level | None
    ceiling: Level
    gate: GateWord | None
    why: str | None = None
    exit_code: int = 0


@dataclass(frozen=True)
class SupportBatch(Result):
    """Every row of the list, each in a state."""

    kind: ClassVar[str] = "support batch"

    rows: tuple[BatchRow, ...]

    @property
    def passed(self) -> bool:
        return all(row.exit_code == 0 for row in self.rows)


def gate_fits(outcome: str, word: GateWord) -> bool:
    """Whether the gate's word bears a claim out: what is needed is a difference too."""
    return word in {"supported": ("no-delta",), "delta": ("delta", "needed"), "needed": ("needed",)}[outcome]
