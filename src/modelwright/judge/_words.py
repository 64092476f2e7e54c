"""The product's only verdict words, and how each is said. Speed, accuracy and repairs speak them alike."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Literal

from modelwright._dataclass import dataclass


class VerdictKind(enum.StrEnum):
    """What may be said. Of speed: `mixed` is faster by one quantile and slower by another, both proven; `noop` and
    `duplicate` are found by comparing graphs, not by timing. Of accuracy: `pass` and `fail` are about what is allowed
    to be lost. Of a repair: whether what was asked for holds; `unfinished` when somebody ended the search.
    `inconclusive` is the same everywhere."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    EQUIVALENT = "equivalent"
    MIXED = "mixed"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    NOOP = "noop"
    DUPLICATE = "duplicate"
    PASS = "pass"
    FAIL = "fail"
    MET = "met"
    ALREADY_MET = "already_met"
    NOT_MET = "not_met"
    UNFINISHED = "unfinished"


Tone = Literal["good", "bad", "equal", "mixed", "unsure"]


@dataclass(frozen=True)
class Said:
    """`tone` is what colour and icon follow; `words` open the sentence about it, with names to fill in."""

    tone: Tone
    words: str


SAID: Mapping[VerdictKind, Said] = {
    VerdictKind.IMPROVED: Said("good", "{arm} is faster than {base}"),
    VerdictKind.REGRESSED: Said("bad", "{arm} is slower than {base}"),
    VerdictKind.EQUIVALENT: Said("equal", "{arm} is as fast as {base}"),
    VerdictKind.MIXED: Said("mixed", "{arm} is faster than {base} by one measure and slower by another"),
    VerdictKind.INCONCLUSIVE: Said("unsure", "not decided between {arm} and {base}"),
    VerdictKind.INVALID: Said("bad", "no verdict on {arm} against {base}"),
    VerdictKind.NOOP: Said("unsure", "{arm} is the same as {base}"),
    VerdictKind.DUPLICATE: Said("unsure", "{arm} is the same as {base}"),
    VerdictKind.PASS: Said("good", "{metric} drops by less than {bound}; {limit} is allowed"),
    VerdictKind.FAIL: Said("bad", "{metric} drops by more than {bound}; {limit} is allowed"),
    VerdictKind.MET: Said("good", "repaired"),
    VerdictKind.ALREADY_MET: Said("good", "nothing to repair"),
    VerdictKind.NOT_MET: Said("bad", "not repaired"),
    VerdictKind.UNFINISHED: Said("unsure", "not finished"),
}


def worst(verdicts: Iterable[VerdictKind]) -> VerdictKind | None:
    """The word for several claims about one candidate: one that fails decides, then one that is open."""
    found = set(verdicts)
    order = (VerdictKind.FAIL, VerdictKind.INCONCLUSIVE, VerdictKind.PASS)
    return next((kind for kind in order if kind in found), None)
