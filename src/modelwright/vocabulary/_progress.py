"""What is going on, for whoever looks on: the one way in which rooms say it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from modelwright._dataclass import dataclass


@dataclass(frozen=True)
class Progress:
    """One thing being done. `fraction` is how much of it is done; `stage` and `label` say within what, and for whom."""

    message: str
    fraction: float | None = None
    stage: str | None = None
    label: str | None = None


OnProgress = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Nobody looks on."""


def within(on_progress: OnProgress, stage: str, label: str) -> OnProgress:
    """Passes on what a stage says, with its name."""
    return lambda progress: on_progress(replace(progress, stage=stage, label=label))
