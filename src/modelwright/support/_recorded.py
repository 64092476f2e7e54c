"""A run read back from its evidence alone: no model, no tool of its time and no machine of its own is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from modelwright._typed import MisfitError
from modelwright.support._asking import gain_of, gate_on_record
from modelwright.support._claim import Claim, ClaimedCase
from modelwright.support._levels import judge_level
from modelwright.support._march import CONTRIBUTION, WHOLE, WITHOUT
from modelwright.support._statement import EvidenceFile, Statement
from modelwright.support._types import GateResult, LadderRow, SupportRun
from modelwright.support._words import Level, RowWord, levels_to, worst_row


def recorded_run(claim: Claim, evidence: EvidenceFile, folder: str) -> SupportRun:
    """Every word is judged again from what was measured, whatever the statement says."""
    gate = recorded_gate(claim, evidence)
    rows = recorded_rows(claim, evidence, CONTRIBUTION)
    base = recorded_rows(claim, evidence, WITHOUT)
    return SupportRun(claim, claim.digest, folder, gate, rows, base, gain_of(gate, rows, base))


def recorded_gate(claim: Claim, evidence: EvidenceFile) -> GateResult | None:
    cases = {(case.target, case.precision) for case in claim.cases}
    asked = (one for one in evidence.statements if one.asked.step == "gate")
    statements = [one for one in asked if (one.asked.target, one.asked.precision) in cases]
    if not statements:
        return None
    try:
        return gate_on_record(claim, statements, None)
    except (MisfitError, KeyError):
        return None


def recorded_rows(claim: Claim, evidence: EvidenceFile, arm: str) -> tuple[LadderRow, ...]:
    rows: list[LadderRow] = []
    for case in claim.cases:
        mine = [
            one
            for one in evidence.statements
            if one.asked.step == "ladder"
            and one.asked.arm == arm
            and (one.asked.target, one.asked.precision) == (case.target, case.precision)
        ]
        if mine:
            rows += _case_rows(claim, case, mine)
    return tuple(rows)


def _case_rows(claim: Claim, case: ClaimedCase, statements: Sequence[Statement]) -> Iterator[LadderRow]:
    before: list[LadderRow] = []
    for level in levels_to(claim.ceiling):
        found = list(_level_rows(level, case, statements))
        if not found and before:
            found = list(_above(level, case, before))
        before += found
        yield from found


def _level_rows(level: Level, case: ClaimedCase, statements: Sequence[Statement]) -> Iterator[LadderRow]:
    by_part: dict[str | None, list[Statement]] = {}
    for one in statements:
        if one.asked.level == level:
            by_part.setdefault(one.asked.component, []).append(one)
    rows = [_row(level, case, part, found) for part, found in by_part.items()]
    yield from rows
    if rows and None not in by_part:
        word: RowWord = worst_row(row.word for row in rows)
        worst = [row for row in rows if row.word == word]
        reasons = tuple(f"{row.component}: {'; '.join(row.reasons)}" for row in worst)
        ids = tuple(one for row in rows for one in row.statements)
        yield LadderRow(level, case.target, case.precision, None, word, WHOLE, reasons, ids, worst[0].blocked_by)


def _row(level: Level, case: ClaimedCase, part: str | None, found: Sequence[Statement]) -> LadderRow:
    """The last attempt counts; what was tried before it stays in sight."""
    last = found[-1]
    ids, said = tuple(one.id for one in found), last.predicate.verdict
    tried = [one.asked.change for one in found if one.asked.change is not None]
    also = (f"tried: {', '.join(tried)}",) if tried else ()
    try:
        judged = judge_level(level, last.predicate.measured)
    except (MisfitError, TypeError, ValueError) as error:
        why = (f"its numbers cannot be read: {error}",)
        return LadderRow(level, case.target, case.precision, part, "inconclusive", said.by, why, ids)
    reasons = (*judged.reasons, *also)
    return LadderRow(level, case.target, case.precision, part, judged.word, said.by, reasons, ids, judged.blocked_by)


def _above(level: Level, case: ClaimedCase, before: Sequence[LadderRow]) -> Iterator[LadderRow]:
    """Of a level that nothing was measured for, below it something was."""
    failed = next((row.level for row in before if row.word == "fail"), None)
    if failed is not None:
        yield LadderRow(level, case.target, case.precision, None, "not-reached", WHOLE, (f"{failed} fails",))
    elif before[0].word == "blocked" and before[0].level == "L0":
        yield replace(before[0], level=level)
