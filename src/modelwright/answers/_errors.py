"""The catalogue of error texts, read once from `errors.toml`."""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright._typed import typed


@dataclass(frozen=True)
class ErrorText:
    """`errors.toml` says what the fields mean."""

    id: str
    about: str
    pattern: str
    cause: str
    next: str
    sources: tuple[str, ...]
    versions: tuple[str, str, str] | None = None
    wraps: bool = False
    rules: tuple[str, ...] = ()

    def found(self, line: str) -> re.Match[str] | None:
        return _compiled(self.pattern).search(line)

    def words(self, match: re.Match[str]) -> tuple[str, str]:
        """Cause and next step, with what the line names."""
        named = {name: (value or "").strip() or "(unnamed)" for name, value in match.groupdict().items()}
        return self.cause.format(**named), self.next.format(**named)


@functools.cache
def error_texts() -> tuple[ErrorText, ...]:
    """The first that is found in a line is what the line says."""
    text = Path(__file__).with_name("errors.toml").read_text("utf-8")
    return tuple(typed(ErrorText, entry, strict=True) for entry in tomllib.loads(text)["error"])


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
