"""Is the knowledge base sound: are all words known, all records there and as they were, and does each status follow?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from modelwright._dataclass import dataclass
from modelwright.judge import Race
from modelwright.knowledge._base import KnowledgeBase
from modelwright.knowledge._standing import reaches
from modelwright.knowledge._types import ExperimentResult, KbFinding, Rung, Standing
from modelwright.knowledge._words import misspelt
from modelwright.vocabulary import Result

_NEEDED: dict[str, Rung] = {"confirmed": "confirmed", "general": "generalised"}


@dataclass(frozen=True)
class LintProblem:
    finding: str
    problem: str


@dataclass(frozen=True)
class LintReport(Result):
    """`records` are those that were read again."""

    kind: ClassVar[str] = "kb lint"

    findings: int
    records: int
    problems: tuple[LintProblem, ...]

    @property
    def clean(self) -> bool:
        return not self.problems


def lint(base: KnowledgeBase, axes: Sequence[str], specimens: Sequence[str]) -> LintReport:
    """`axes` are those that a search knows."""
    problems = [
        LintProblem(finding.id, problem)
        for finding in base.findings.values()
        for problem in misspelt(finding, axes, specimens) or _problems(base.standing(finding.id), base)
    ]
    records = {name for one in base.findings.values() for name in _records(one)}
    return LintReport(len(base.findings), len(records), tuple(problems))


def _records(finding: KbFinding) -> tuple[str, ...]:
    return (*finding.evidence, *(finding.mechanism.evidence if finding.mechanism is not None else ()))


def _problems(one: Standing, base: KnowledgeBase) -> Iterator[str]:
    for name in dict.fromkeys(_records(one.finding)):
        problem = base.evidence.problem(name)
        if problem is not None:
            yield f"record {name[:12]}: {problem}"
        else:
            yield from _silent(one.finding, name, base)
            yield from _misjudged(name, base)
    needed = _NEEDED.get(one.finding.status)
    if needed is not None and not reaches(one.rung, needed):
        yield f"it is called {one.finding.status}, and its evidence reaches only '{one.rung}'"
    if one.finding.kind == "lesson" and one.finding.status in _NEEDED:
        yield "a lesson is adopted, not confirmed: it is about method"


def _silent(finding: KbFinding, name: str, base: KnowledgeBase) -> Iterator[str]:
    seen = base.evidence.observations(name)
    if name in finding.evidence and not any(one.change == finding.change for one in seen):
        yield f"record {name[:12]} says nothing about {finding.change or 'it'}"


def _misjudged(name: str, base: KnowledgeBase) -> Iterator[str]:
    """The verdict of a race follows from its samples, whoever wrote it down."""
    record = base.evidence.record(name)
    found = record.payload if record is not None else None
    if not isinstance(found, ExperimentResult) or found.speed is None or not found.units:
        return
    word = rejudged(found)
    if word != found.speed.kind.value:
        yield f"record {name[:12]} says {found.speed.kind.value}, and its samples say {word}"


def rejudged(found: ExperimentResult) -> str:
    assert found.speed is not None
    first = found.speed.by[0]
    quantiles = tuple(verdict.quantile for verdict in found.speed.by)
    race = Race(["arm"], first.alpha * len(quantiles), min_effect=first.min_effect, quantiles=quantiles)
    for unit in found.units:
        base, arm = unit.legs_ms
        if unit.sentinel:
            race.add_sentinel(*((base, arm) if unit.base_first else (arm, base)))
        else:
            race.add("arm", base=base, arm=arm)
    return race.findings()["arm"].kind.value
