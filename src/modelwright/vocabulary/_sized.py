"""A size that was chosen for a model, and who says that it is this one."""

from __future__ import annotations

from typing import Literal

from modelwright._dataclass import dataclass

Origin = Literal[
    "as asked",
    "the data",
    "the processor",
    "the configuration",
    "the file's metadata",
    "its export",
    "one sample",
    "a guess",
]
GUESS: Origin = "a guess"


@dataclass(frozen=True)
class Sized:
    """`name` is a dimension of an input, or a size of an export. A guess must be as loud as made-up data."""

    name: str
    size: int
    origin: Origin

    @property
    def guessed(self) -> bool:
        return self.origin == GUESS
