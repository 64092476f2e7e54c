"""What is inside a model, with its fingerprint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from modelwright._json import plain
from modelwright.graph._fingerprint import fingerprint
from modelwright.graph._load import load
from modelwright.graph._summary import ModelSummary, summary
from modelwright.vocabulary import Result


@dataclass(frozen=True)
class Inspection(Result):
    """The fingerprint is the same for two files that hold the same graph and weights."""

    kind: ClassVar[str] = "inspect"

    fingerprint: str
    model: ModelSummary

    def content(self) -> dict[str, Any]:
        return {"fingerprint": self.fingerprint, **plain(self.model)}


def inspect(path: Path) -> Inspection:
    """Read the model; weights in external files are checked and hashed, never loaded."""
    graph = load(path)
    found = summary(graph)
    return Inspection(fingerprint(graph), found)
