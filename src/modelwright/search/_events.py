"""What happens in a search, and what it asks for next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Literal

from modelwright._dataclass import dataclass
from modelwright.search._variant import BASELINE, Variant

Why = Literal["failed", "gate", "placement", "answers", "crashed", "hopeless", "memory", "rule", "latency"]
Samples = Sequence[Sequence[float]]

# What happened. `seconds` is what it took of the budget.


@dataclass(frozen=True)
class VariantMade:
    """`identity` is equal for two variants that would be the same thing measured twice, `graph` for two that are the
    same model opened otherwise."""

    label: str
    identity: str
    size: int
    seconds: float = 0.0
    graph: str = ""


@dataclass(frozen=True)
class VariantDropped:
    label: str
    why: Why
    reason: str
    seconds: float = 0.0


@dataclass(frozen=True)
class VariantTried:
    """It opens and answers as the baseline does. `left_nodes` are those the target does not take, None on a CPU;
    `peak_bytes` is what a process takes that opens and runs it, where that was asked for, `lost` what another precision
    loses of the metric.
    Not `timed` is what a simulator computes: then placement and size decide, and nothing is measured."""

    label: str
    left_nodes: int | None = None
    partitions: int | None = None
    timed: bool = True
    peak_bytes: int | None = None
    seconds: float = 0.0
    lost: float | None = None


@dataclass(frozen=True)
class UnitTaken:
    """`label` None is the baseline against itself. Samples in ms by burst, as the judge takes them; where energy is
    what counts, that of a run in mJ too."""

    label: str | None
    base_first: bool
    base_ms: Samples
    arm_ms: Samples
    confirming: bool
    seconds: float = 0.0
    base_mj: Samples = field(default_factory=list)
    arm_mj: Samples = field(default_factory=list)

    @property
    def base(self) -> Samples:
        """What is judged."""
        return self.base_mj or self.base_ms

    @property
    def arm(self) -> Samples:
        return self.arm_mj or self.arm_ms

    @property
    def slots(self) -> tuple[Samples, Samples]:
        """What was taken in the first session and in the second."""
        return (self.base, self.arm) if self.base_first else (self.arm, self.base)


@dataclass(frozen=True)
class VariantRebuilt:
    """The champion made anew, in a store that had nothing."""

    label: str
    identity: str
    seconds: float = 0.0


@dataclass(frozen=True)
class DeviceCrashed:
    """The process that ran a variant is gone. What else it took with it is not known before the device is asked."""

    label: str
    reason: str
    seconds: float = 0.0


@dataclass(frozen=True)
class DeviceProbed:
    """A known-good model ran on the device; `fails` says why it did not."""

    label: str
    fails: str | None
    seconds: float = 0.0


SearchEvent = VariantMade | VariantDropped | VariantTried | UnitTaken | VariantRebuilt | DeviceCrashed | DeviceProbed


# What to do next.


@dataclass(frozen=True)
class MakeVariants:
    variants: tuple[Variant, ...]


@dataclass(frozen=True)
class TryVariants:
    """The baseline comes first, because the others are held against it."""

    labels: tuple[str, ...]


@dataclass(frozen=True)
class TakeUnit:
    """`label` None is the sentinel."""

    label: str | None
    base_first: bool
    confirming: bool


@dataclass(frozen=True)
class RebuildVariant:
    label: str


@dataclass(frozen=True)
class ProbeDevice:
    """`label` is what broke on it."""

    label: str


@dataclass(frozen=True)
class SearchDone:
    """`champion` is the baseline where nothing is proven to be better. `needed_s` is the budget that would do, where it
    was the budget that ended the search; `lost` that the device was."""

    champion: str
    reason: str
    needed_s: float | None = None
    lost: bool = False


Instruction = MakeVariants | TryVariants | TakeUnit | RebuildVariant | ProbeDevice | SearchDone


def answers(instruction: Instruction, event: SearchEvent) -> bool:
    """Whether this can have happened because of that."""
    if isinstance(instruction, MakeVariants):
        labels = [variant.label for variant in instruction.variants]
        return isinstance(event, VariantMade | VariantDropped) and event.label in labels
    if isinstance(instruction, TryVariants):
        return isinstance(event, VariantTried | VariantDropped | DeviceCrashed) and event.label in instruction.labels
    if isinstance(instruction, ProbeDevice):
        return isinstance(event, DeviceProbed) and event.label == instruction.label
    if isinstance(instruction, TakeUnit):
        same = isinstance(event, UnitTaken) and event.confirming == instruction.confirming
        crashed = isinstance(event, DeviceCrashed) and event.label in (instruction.label, BASELINE)
        return crashed or (event.label == instruction.label and (same or isinstance(event, VariantDropped)))
    if isinstance(instruction, RebuildVariant):
        return isinstance(event, VariantRebuilt | VariantDropped) and event.label == instruction.label
    return False


class KnownEvents:
    """What happened in an earlier call. Each is used once, and for what it answers, whatever else is asked today: with
    another budget or other axes, what was measured counts all the same."""

    def __init__(self, events: Iterable[SearchEvent]) -> None:
        self._left = list(events)

    def take(self, instruction: Instruction) -> SearchEvent | None:
        """The first that can have happened because of this."""
        for place, event in enumerate(self._left):
            if answers(instruction, event):
                return self._left.pop(place)
        return None
