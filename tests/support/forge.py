"""Contributions by hand: evidence as a run would write it, and what a forger makes of it."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from modelwright import _json
from modelwright._output import SEAL, is_sealed, sealed
from modelwright.evidence import RecordedVerdict, read_environment
from modelwright.support import (
    EVIDENCE,
    EvidenceLog,
    StatementAsked,
    StatementRecipe,
    StatementSeeds,
    SupportPredicate,
    subject_of,
    this_tool,
)


class Said(NamedTuple):
    """A word, who gave it, and why."""

    word: str
    by: str
    reasons: tuple[str, ...] = ()


def copied(folder, place):
    """The contribution under its own name: what forgers work on."""
    found = Path(place) / folder.name
    shutil.copytree(folder, found)
    return found


def lines(folder):
    return [json.loads(line) for line in (folder / EVIDENCE).read_bytes().splitlines()]


def write_lines(folder, documents):
    (folder / EVIDENCE).write_bytes(b"".join(_json.canonical(one) + b"\n" for one in documents))


def rehashed(documents):
    """Every id and every link made right again."""
    previous = None
    for one in documents:
        one.pop("id", None)
        one["predicate"]["previous"] = previous
        previous = one["id"] = _json.digest(one)
    return documents


def forged(folder, change, *, rehash=True):
    """`change` edits the statements in place; with `rehash` no id tells."""
    documents = lines(folder)
    found = change(documents)
    documents = documents if found is None else found
    write_lines(folder, rehashed(documents) if rehash else documents)
    return folder


def resealed(path, before, after):
    """A sealed file with other words, and the seal of these."""
    text = path.read_text(encoding="utf-8")
    assert before in text, f"{before} is not in {path.name}"
    assert is_sealed(path.read_bytes())
    plain = re.sub("wright-seal:[0-9a-f]{64}", SEAL, text.replace(before, after))
    path.write_bytes(sealed(plain))


def rows_of(documents, level=None, step="ladder"):
    asked = [(one, one["predicate"]["asked"]) for one in documents]
    return [one for one, said in asked if said["step"] == step and level in (None, said["level"])]


def add_statement(folder, claim, asked, measured, verdict, **changes):
    """One line, as a run writes it."""
    given = {
        "claim": claim.digest,
        "previous": None,
        "asked": asked,
        "recipe": StatementRecipe(),
        "tool": replace(this_tool(), dirty=False),
        "environment": read_environment(),
        "seeds": StatementSeeds(claim.seed("weights"), claim.seeds("inputs", 3)),
        "argv": ("wright", "support", "run"),
        "exit": 0,
        "log": None,
        "measured": measured,
        "verdict": RecordedVerdict(verdict.word, verdict.by),
        "reasons": verdict.reasons,
        "made_at": "2026-11-17T00:00:00+00:00",
        "seconds": 1.0,
        **changes,
    }
    subject = changes.pop("subject", (subject_of("source", claim.source.name, claim.source.digest),))
    given.pop("subject", None)
    return EvidenceLog(folder).add(subject, SupportPredicate(**given))


__all__ = [
    "Said",
    "StatementAsked",
    "add_statement",
    "copied",
    "forged",
    "lines",
    "rehashed",
    "resealed",
    "rows_of",
    "write_lines",
]
