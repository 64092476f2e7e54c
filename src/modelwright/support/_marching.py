"""The gate, then level by level: to the ceiling, without asking. What is on record already is not done again."""

from __future__ import annotations

from collections.abc import Iterator

from modelwright.errors import InputError
from modelwright.support._asking import gain_of, run_gate
from modelwright.support._case import source_of
from modelwright.support._claim import Claim
from modelwright.support._climber import climb_all
from modelwright.support._gate import BASE_TASK, WITH
from modelwright.support._march import March
from modelwright.support._statement import this_tool
from modelwright.support._types import LadderRow, SupportRun


def run_march(march: March, *, gate: bool, ladder: bool) -> SupportRun:
    """One pass. Whatever is on record is read back."""
    _require_source(march.claim)
    found = run_gate(march) if gate else None
    rows: tuple[LadderRow, ...] = ()
    base: tuple[LadderRow, ...] = ()
    if ladder:
        rows = climb_all(march, WITH if march.contributed else BASE_TASK, march.claim.cases)
        if found is not None and found.word == "delta" and rows:
            base = climb_all(march, BASE_TASK, [case for case in march.claim.cases if str(case) in found.differing])
    claim = march.claim
    return SupportRun(
        claim,
        claim.digest,
        str(march.notebook.folder),
        found,
        rows,
        base,
        gain_of(found, rows, base),
        tuple(_notes(march)),
    )


def _notes(march: March) -> Iterator[str]:
    tool = this_tool()
    if tool.dirty:
        yield "this modelwright is a working tree that is not its commit: nobody else can have it"
    if march.notebook.was_torn:
        yield "the last line of the evidence was cut short, and was measured again"
    if march.claim.source.random_weights:
        yield "its weights are made up: nothing is shown about a checkpoint"


def _require_source(claim: Claim) -> None:
    found = source_of(claim.source).identity()
    if found != claim.source.digest:
        raise InputError(
            f"{claim.source.name} is not the model that is claimed",
            cause=f"its content is {found[:19]}…, the claim says {claim.source.digest[:19]}…",
            fix="bring the model back, or run it into a new folder",
        )
