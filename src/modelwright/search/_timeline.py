"""What a search spent its time on, step after step."""

from __future__ import annotations

from dataclasses import replace

from modelwright._dataclass import dataclass
from modelwright.search._events import (
    DeviceCrashed,
    DeviceProbed,
    SearchEvent,
    UnitTaken,
    VariantDropped,
    VariantMade,
    VariantRebuilt,
    VariantTried,
)

_WORDS: dict[type, str] = {
    VariantMade: "variants built",
    VariantTried: "variants opened and checked",
    VariantRebuilt: "champion built anew",
    VariantDropped: "variants left out",
    DeviceCrashed: "variants that broke their process",
    DeviceProbed: "questions whether the device works",
}
_SCREENED, _CONFIRMED = "units of the screening", "units that confirm"


@dataclass(frozen=True)
class TimelineStep:
    """So many of `what`, from `at_s` of the time that was spent on."""

    what: str
    count: int
    at_s: float
    seconds: float


def noted(steps: tuple[TimelineStep, ...], event: SearchEvent, at_s: float) -> tuple[TimelineStep, ...]:
    """One more of the same is no step of its own; nor is who is left out while others are built or measured."""
    what = (_CONFIRMED if event.confirming else _SCREENED) if isinstance(event, UnitTaken) else _WORDS[type(event)]
    last = steps[-1] if steps else None
    if last is not None and (what == last.what or isinstance(event, VariantDropped)):
        return (*steps[:-1], replace(last, count=last.count + 1, seconds=last.seconds + event.seconds))
    return (*steps, TimelineStep(what, 1, at_s, event.seconds))
