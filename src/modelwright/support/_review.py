"""What a reviewer finds who believes nothing: rows as they came out here, beside rows as they were claimed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from modelwright._dataclass import dataclass
from modelwright.support._audit import ReviewFinding, ReviewWord, row_name
from modelwright.support._claim import Claim
from modelwright.support._march import CONTRIBUTION
from modelwright.support._statement import EvidenceFile, Statement, SupportPredicate
from modelwright.support._types import LadderRow, SupportRun, gate_fits
from modelwright.support._words import Level, RowWord, levels_to
from modelwright.vocabulary import Result

ReviewVerdict = Literal["approve", "changes", "reject"]
ReviewMode = Literal["rerun", "evidence only"]


@dataclass(frozen=True)
class ReviewRow:
    """One claimed row: the word that its records bear, the word that came out here, and what that means."""

    level: Level
    target: str
    precision: str
    component: str | None
    claimed: RowWord
    found: RowWord | None
    word: ReviewWord
    reason: str

    @property
    def name(self) -> str:
        return row_name(self.level, self.target, self.precision, self.component)


@dataclass(frozen=True)
class SupportReview(Result):
    """`approve` needs every claimed row reproduced, or truly blocked here too, a gate that bears the claim out, and
    nothing among the findings. `planted` is how many defects were hunted first; `nonce` is what the seeds here follow
    from, drawn after the contribution was finished."""

    kind: ClassVar[str] = "support review"

    folder: str
    mode: ReviewMode
    verdict: ReviewVerdict
    reasons: tuple[str, ...]
    rows: tuple[ReviewRow, ...]
    findings: tuple[ReviewFinding, ...]
    gate: tuple[str | None, str | None]
    commit: str | None
    nonce: str | None
    planted: int
    claim: str | None

    @property
    def approved(self) -> bool:
        return self.verdict == "approve"


def compared_rows(claim: Claim, claimed: Sequence[LadderRow], own: SupportRun | None) -> tuple[ReviewRow, ...]:
    """Every row that is claimed, also one that the records leave out."""
    here = {} if own is None else {_place(row): row for row in own.rows}
    rows = [_compared(row, here.get(_place(row)) or _whole(row, own), own is not None) for row in claimed]
    return (*rows, *_absent(claim, claimed))


def _place(row: LadderRow) -> tuple[Level, str, str, str | None]:
    return row.level, row.target, row.precision, row.component


def _whole(row: LadderRow, own: SupportRun | None) -> LadderRow | None:
    """A climb that ended below has one row for all parts of a level."""
    every = () if own is None else own.rows
    found = [one for one in every if (one.level, one.target, one.precision) == (row.level, row.target, row.precision)]
    return next((one for one in found if one.word == "not-reached"), None)


def _compared(row: LadderRow, here: LadderRow | None, ran: bool) -> ReviewRow:
    word, reason = _meaning(row, here, ran)
    found = None if here is None else here.word
    return ReviewRow(row.level, row.target, row.precision, row.component, row.word, found, word, reason)


def _meaning(row: LadderRow, here: LadderRow | None, ran: bool) -> tuple[ReviewWord, str]:
    if not ran:
        return "unverified", "nothing was built again"
    if here is None:
        return "unverified", "it came to no such row here"
    why = "; ".join(here.reasons) or here.word
    if row.word == here.word:
        if row.word == "blocked" and row.blocked_by != here.blocked_by:
            return "contradicted", f"blocked by {here.blocked_by} here, {row.blocked_by} is said: {why}"
        return "reproduced", why
    if here.word == "fail" and row.word == "not-reached":
        return "reproduced", why
    if row.word == "blocked" or here.word == "fail":
        return "contradicted", f"{here.word} here: {why}"
    # Also who says less than came out here: other samples may have decided, and nothing is approved by it.
    return "unverified", f"{here.word} here: {why}"


def _absent(claim: Claim, claimed: Sequence[LadderRow]) -> Iterator[ReviewRow]:
    there = {(row.level, row.target, row.precision) for row in claimed}
    for case in claim.cases:
        for level in levels_to(claim.ceiling):
            if (level, case.target, case.precision) not in there:
                yield ReviewRow(
                    level, case.target, case.precision, None, "not-reached", None, "unverified", "it has no record"
                )


def gate_findings(claim: Claim, claimed: SupportRun, own: SupportRun | None) -> Iterator[ReviewFinding]:
    """`own` is the run here; None where nothing was built."""
    said, found = claimed.gate, None if own is None else own.gate
    if said is None:
        yield ReviewFinding("gate", "gate", "unverified", "changes", "there is no record of the gate")
        return
    if not gate_fits(claim.outcome, said.word):
        why = f"{claim.outcome} is claimed, and the gate says {said.word}: {'; '.join(said.reasons)}"
        yield ReviewFinding("gate", "gate", "contradicted", "reject", why)
    if found is not None and found.word != said.word:
        fits = gate_fits(claim.outcome, found.word)
        why = f"it says {said.word}, here it is {found.word}: {'; '.join(found.reasons)}"
        yield ReviewFinding("gate", "gate", "contradicted", "changes" if fits else "reject", why)
    shown = claimed if own is None else own
    if shown.gate is not None and shown.gate.word == "delta" and shown.gain is None:
        why = "what differs owes a gain that is shown, and there is none"
        yield ReviewFinding("gate", "gate", "unverified", "changes", why)


def marked(rows: Sequence[ReviewRow], findings: Sequence[ReviewFinding]) -> tuple[ReviewRow, ...]:
    """Rows as they compare, and as their records are: one that contradicts itself is contradicted whatever came out
    here, and one that another tool made is not what was reproduced."""
    words: dict[str | None, ReviewFinding] = {one.row: one for one in findings if one.word == "stale"}
    words |= {one.row: one for one in findings if one.word == "contradicted"}
    return tuple(_marked(row, words.get(row.name)) for row in rows)


def _marked(row: ReviewRow, finding: ReviewFinding | None) -> ReviewRow:
    if finding is None or row.word == "contradicted" or (finding.word == "stale" and row.word != "reproduced"):
        return row
    return replace(row, word=finding.word, reason=finding.reason)


def decided(
    rows: Sequence[ReviewRow], findings: Sequence[ReviewFinding], mode: ReviewMode
) -> tuple[ReviewVerdict, tuple[str, ...]]:
    """The verdict, a pure function of what was found. A row that has its word from a finding is told by the finding."""
    rejecting = [one for one in findings if one.weight == "reject"]
    bad = [f"{one.row or one.rule}: {one.reason}" for one in rejecting]
    bad += [f"{row.name}: {row.word}, {row.reason}" for row in _untold(rows, rejecting) if row.word == "contradicted"]
    if bad:
        return "reject", tuple(dict.fromkeys(bad))
    open_ = [f"{one.row or one.rule}: {one.reason}" for one in findings]
    open_ += [f"{row.name}: {row.word}, {row.reason}" for row in _untold(rows, findings) if row.word != "reproduced"]
    open_ += [
        f"{row.name}: {row.claimed} is not what is claimed" for row in rows if row.claimed not in ("pass", "blocked")
    ]
    if mode == "evidence only":
        open_.insert(0, "only the evidence was read: nothing can be approved by that")
    if not rows:
        open_.append("nothing is claimed")
    return ("changes", tuple(dict.fromkeys(open_))) if open_ else ("approve", ())


def _untold(rows: Sequence[ReviewRow], findings: Sequence[ReviewFinding]) -> Iterator[ReviewRow]:
    told = {(one.row, one.reason) for one in findings}
    return (row for row in rows if (row.name, row.reason) not in told)


def number_findings(evidence: EvidenceFile, same: EvidenceFile) -> Iterator[ReviewFinding]:
    """The same tool with the same libraries on the same CPU makes the same files from the same claim, and measures the
    same: `same` is what came of its own seeds here. Times are not compared. Elsewhere files and last digits differ
    honestly: what is far better or worse than what came out here is for a person to look at."""
    for one in evidence.statements:
        other = same.find(one.asked)
        if one.asked.step == "gate" or one.asked.arm != CONTRIBUTION or other is None:
            continue
        if not _same_place(one.predicate, other.predicate):
            yield from _far_findings(one, other)
            continue
        name = row_name(one.asked.level or one.asked.step, one.asked.target, one.asked.precision, one.asked.component)
        wrong = _other_files(one, other)
        if wrong is not None:
            why = f"{wrong} is another file when it is built here, with the same tool, libraries and CPU"
            yield ReviewFinding("artifact", name, "contradicted", "reject", why)
        elif one.asked.step == "ladder" and one.asked.level not in _TIMED:
            place = _differs(one.predicate.measured, other.predicate.measured)
            if place is not None:
                why = f"{place[0]} is said to be {place[1]}, and is {place[2]} here with the same seeds"
                yield ReviewFinding("number", name, "contradicted", "reject", why)


def _far_findings(one: Statement, other: Statement) -> Iterator[ReviewFinding]:
    if one.asked.step != "ladder" or one.asked.level in _TIMED:
        return
    place = _differs(one.predicate.measured, other.predicate.measured, far=True)
    if place is not None:
        name = row_name(one.asked.level, one.asked.target, one.asked.precision, one.asked.component)
        why = f"{place[0]} is said to be {place[1]}, and is {place[2]} here with the same seeds on another machine"
        yield ReviewFinding("number", name, "unverified", "changes", why)


_TIMED = ("L4",)
# Other threads add in another order: that moves a distance of rounding errors most, and hardly anything else.
_CLOSE, _CLOSE_SHARE, _ROUNDING = 1e-5, 1e-4, {"max_abs": 1.0, "value": 0.05, "sqnr_db": 0.1, "seconds": 1e9}
# Another CPU or other libraries: distances that are more than rounding within ten times of each other, scores within
# two points.
_DISTANCES, _FAR_SCORE = {"cosine": 1e-5, "max_abs": 1e-3}, 0.02


def _other_files(one: Statement, other: Statement) -> str | None:
    files, found = (
        {subject.name: subject.digest.get("sha256") for subject in each.subject if subject.name.startswith("file:")}
        for each in (one, other)
    )
    names = sorted({*files, *found})
    return next((name.removeprefix("file:") for name in names if files.get(name) != found.get(name)), None)


def _differs(said: Any, found: Any, place: str = "it", *, far: bool = False) -> tuple[str, Any, Any] | None:
    """The first value that differs by more than other threads could make of it, or, `far`, another machine; there only
    numbers that were measured are looked at."""
    if isinstance(said, Mapping) and isinstance(found, Mapping):
        inner = ((said.get(key), found.get(key), str(key)) for key in dict.fromkeys((*said, *found)))
    elif isinstance(said, list | tuple) and isinstance(found, list | tuple) and len(said) == len(found):
        inner = ((a, b, f"{place}[{number}]") for number, (a, b) in enumerate(zip(said, found, strict=True)))
    elif far:
        numbers = isinstance(said, float) and isinstance(found, float) and place in _SCORES
        return (place, said, found) if numbers and _is_far(place, said, found) else None
    elif isinstance(said, float) and isinstance(found, float | int):
        allowed = _CLOSE + _ROUNDING.get(place, _CLOSE_SHARE) * abs(found)
        return None if abs(said - found) <= allowed else (place, said, found)
    else:
        return None if said == found or (isinstance(said, str) and isinstance(found, str)) else (place, said, found)
    return next((wrong for a, b, name in inner if (wrong := _differs(a, b, name, far=far)) is not None), None)


_SCORES = (*_DISTANCES, "candidate", "reference")


def _is_far(place: str, said: float, found: float) -> bool:
    if place not in _DISTANCES:
        return abs(said - found) > _FAR_SCORE * max(1.0, abs(found))
    one, other = (1 - said, 1 - found) if place == "cosine" else (said, found)
    return abs(one - other) > _DISTANCES[place] and max(one, other) > 10 * max(0.0, min(one, other))


def _same_place(one: SupportPredicate, other: SupportPredicate) -> bool:
    cpus = (_cpu(said) for said in (one, other))
    same = (one.tool.digest, dict(one.environment.packages)) == (other.tool.digest, dict(other.environment.packages))
    return same and len(set(cpus)) == 1


def _cpu(said: SupportPredicate) -> tuple[str, ...]:
    cpu = said.environment.host.cpu
    return (said.environment.host.machine, str(cpu.model), *sorted(map(str, cpu.features or ())))
