"""On which machine something is measured."""

from __future__ import annotations

from pathlib import Path

from modelwright._dataclass import dataclass


@dataclass(frozen=True)
class On:
    """A worker of a cluster by its name, or by a target that it announces. `scheduler` is `tls://HOST:PORT`, by default
    what MODELWRIGHT_SCHEDULER says; `tls` the folder of this machine's certificates."""

    name: str
    scheduler: str | None = None
    tls: str | Path | None = None
