"""One who takes part in a search, and what became of it so far."""

from __future__ import annotations

import math
from dataclasses import field

from modelwright._dataclass import dataclass
from modelwright.judge import Judge, Verdict, VerdictKind
from modelwright.search._events import VariantDropped, VariantMade, VariantTried
from modelwright.search._limits import Objective
from modelwright.search._variant import Variant


@dataclass
class Contender:
    """One variant and what became of it so far."""

    variant: Variant
    made: VariantMade | None = None
    tried: VariantTried | None = None
    dropped: VariantDropped | None = None
    same_as: str | None = None
    judge: Judge | None = None
    unit_ms: list[float] = field(default_factory=list)

    @property
    def label(self) -> str:
        return self.variant.label

    @property
    def runs(self) -> bool:
        return self.dropped is None and self.same_as is None

    @property
    def verdict(self) -> Verdict | None:
        """None before its first unit."""
        return self.judge.verdict() if self.judge is not None else None

    @property
    def effect(self) -> float:
        verdict = self.verdict
        return (verdict.effect or 0.0) if verdict is not None else 0.0

    @property
    def is_winner(self) -> bool:
        verdict = self.verdict
        return verdict is not None and verdict.kind is VerdictKind.IMPROVED

    @property
    def units(self) -> int:
        return len(self.judge.log_ratios) if self.judge is not None else 0

    @property
    def pieces(self) -> tuple[int, int]:
        """Nodes that the target leaves to the CPU, and partitions."""
        return (self.tried.left_nodes or 0, self.tried.partitions or 0) if self.tried is not None else (0, 0)

    def cost(self, objective: Objective) -> float:
        """In bytes; what is not known is no gain."""
        if objective == "size":
            return self.made.size if self.made is not None else math.inf
        peak = self.tried.peak_bytes if self.tried is not None else None
        return math.inf if peak is None else peak
