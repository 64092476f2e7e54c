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
