"""A measurement beside one of an earlier time, as values."""

from __future__ import annotations

from modelwright._dataclass import dataclass
from modelwright.models import FileDigest


@dataclass(frozen=True)
class TypicalTime:
    """The typical run of one model: the median over sessions, and the lowest and highest of them.

    One session alone has no range: how the next one would run is not known.
    """

    model: str
    files: tuple[FileDigest, ...]
    p50_ms: float
    low_ms: float | None
    high_ms: float | None
    sessions: int


@dataclass(frozen=True)
class Changed:
    """Something that differs between then and now."""

    what: str
    then: str
    now: str


@dataclass(frozen=True)
class Against:
    """`record` is that of the earlier time. `same` are what both times share, `changed` what they do not. `proven` is
    always false, and `next` says what would prove something."""

    record: str
    then_at: str
    then: tuple[TypicalTime, ...]
    now: tuple[TypicalTime, ...]
    same: tuple[str, ...]
    changed: tuple[Changed, ...]
    says: tuple[str, ...]
    next: str
    proven: bool = False
