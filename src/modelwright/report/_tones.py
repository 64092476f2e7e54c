"""How a verdict looks on a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from modelwright.judge import SAID, Tone, VerdictKind

_STYLES: Mapping[Tone, str] = {
    "good": "bold green",
    "bad": "bold red",
    "equal": "bold cyan",
    "mixed": "bold magenta",
    "unsure": "bold yellow",
}


def verdict_style(kind: VerdictKind) -> str:
    return _STYLES[SAID[kind].tone]
