"""Commands as they are typed, and verdicts as they are coloured."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from modelwright.judge import SAID, Tone, VerdictKind
from modelwright.report.html._kit import Shade

_SHADES: Mapping[Tone, Shade] = {"good": "good", "bad": "bad", "equal": "", "mixed": "fair", "unsure": "fair"}


def command(verb: str, *words: str) -> str:
    return shlex.join(("wright", verb, *words))


def shade(kind: VerdictKind) -> Shade:
    return _SHADES[SAID[kind].tone]
