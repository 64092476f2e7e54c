"""The words that support is told in. One table: nothing else is ever said of a level or of a contribution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from modelwright._dataclass import dataclass

Effort = Literal["none", "recipe", "family", "shared"]
"""What a model takes beyond the tool as it is: nothing, settings, a file for its type, or what others share."""
Outcome = Literal["supported", "delta", "needed"]
"""What is claimed: that the tool does it as it is, that a contribution gains something, that nothing works without."""
Level = Literal["L0", "L1", "L2", "L3", "L4", "L5"]
RowWord = Literal["pass", "fail", "inconclusive", "blocked", "not-reached"]
GateWord = Literal["no-delta", "inert", "delta", "needed", "flaky", "blocked"]
BlockedBy = Literal["host", "upstream", "data", "harness", "timeout"]


@dataclass(frozen=True)
class LevelText:
    """`title` in a word, `passes` when."""

    title: str
    passes: str


LEVELS: Mapping[Level, LevelText] = {
    "L0": LevelText("structure", "the graphs are sound, and are what the claim says"),
    "L1": LevelText("runs", "the claimed EP runs it, and its answers are finite and not constant"),
    "L2": LevelText("parity", "it answers as what it was made from does"),
    "L3": LevelText("task", "an evaluation on labelled data says pass"),
    "L4": LevelText("speed", "its times are valid, steady and within the claim's limit"),
    "L5": LevelText("portable", "the artifacts of all targets agree, and open elsewhere"),
}
ROW_WORDS: Mapping[RowWord, str] = {
    "pass": "what the level asks for was measured",
    "fail": "what the level asks for was measured, and is not so",
    "inconclusive": "the measurements do not decide it",
    "blocked": "it could not be measured here, and what was tried is on record",
    "not-reached": "a level below failed, or it is above what was asked for",
}
GATE_WORDS: Mapping[GateWord, str] = {
    "no-delta": "the tool does the same without it",
    "inert": "it says something else, and the result is the same",
    "delta": "the result differs; that it is better remains to be shown",
    "needed": "without it nothing is built, with it always",
    "flaky": "seeds decide whether it is built, or what is built",
    "blocked": "it is not built, with or without",
}
BLOCKED_BY: Mapping[BlockedBy, str] = {
    "host": "this machine cannot run it",
    "upstream": "the model, or a library that others make, stands in the way",
    "data": "there is no data to measure it on",
    "harness": "nothing here can measure it",
    "timeout": "it takes longer than it may",
}
_WORST: tuple[RowWord, ...] = ("fail", "not-reached", "inconclusive", "blocked", "pass")


def worst_row(words: Iterable[RowWord]) -> RowWord:
    """The word for several rows at once; for none, that nothing was reached."""
    found = set(words)
    return next((word for word in _WORST if word in found), "not-reached")


def levels_to(ceiling: Level) -> tuple[Level, ...]:
    every = tuple(LEVELS)
    return every[: every.index(ceiling) + 1]
