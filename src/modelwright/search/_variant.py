"""A point of the space: what is done otherwise than in the baseline."""

from __future__ import annotations

from modelwright._dataclass import dataclass

BASELINE = "baseline"
PASS_AXIS = "pass"
_SIGNS = ("+", "-")


@dataclass(frozen=True, order=True)
class AxisChange:
    """One thing done otherwise: `pass` `+gelu_fusion`, `threads` `1`."""

    axis: str
    value: str

    def __str__(self) -> str:
        return self.value if self.value.startswith(_SIGNS) else f"{self.axis}={self.value}"

    @property
    def slot(self) -> str:
        """Two changes of one slot exclude each other; every pass has its own."""
        return f"{self.axis}:{self.value.lstrip('+-')}" if self.axis == PASS_AXIS else self.axis


@dataclass(frozen=True)
class Variant:
    """The baseline with these changes, in the order of the axes."""

    changes: tuple[AxisChange, ...] = ()

    @property
    def label(self) -> str:
        """Said by what differs, so that no two variants share one."""
        return " ".join(map(str, self.changes)) or BASELINE

    @property
    def slots(self) -> frozenset[str]:
        return frozenset(change.slot for change in self.changes)


def combinations(winners: list[Variant], most: int) -> list[Variant]:
    """All changes that won together, the best of each slot; and that without each one of them, to see who is needed.

    `winners` come best first. Where leaving one out is what a winner is already, nothing is proposed twice.
    """
    chosen: dict[str, AxisChange] = {}
    for change in (change for winner in winners for change in winner.changes):
        chosen.setdefault(change.slot, change)
    every = sorted(chosen.values())
    if len(every) < 2:
        return []
    without = [Variant(tuple(one for one in every if one is not left)) for left in every]
    found = dict.fromkeys([Variant(tuple(every)), *without])
    return [variant for variant in found if len(variant.changes) > 1][:most]
