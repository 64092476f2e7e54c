"""What a rule is: a predicate over what was gathered, its sentence, what it stands on, and the cures it can try."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright.answers._gather import Complaint, Gathered, Refused, attempt
from modelwright.answers._types import Cause, Symptom, TriedCure
from modelwright.store import Store
from modelwright.vocabulary import OnProgress


@dataclass(frozen=True)
class Shown:
    """What shows a cause: facts in words, where, and what the sentence names."""

    facts: tuple[str, ...]
    where: tuple[str, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Lab:
    """Where cures are tried: a folder for what is changed, the store for what stages make."""

    folder: Path
    store: Store
    on_progress: OnProgress

    def file(self, name: str) -> Path:
        return self.folder / name

    def runs(self, title: str, how: str, before: str, tried: Complaint) -> TriedCure:
        """Whether it runs then."""
        outcome = attempt(tried)
        if isinstance(outcome, Refused):
            return TriedCure(title, how, before, outcome.words, False)
        bad = f"it runs, and NaN or infinity are in {', '.join(outcome.not_finite)}"
        return TriedCure(title, how, before, bad if outcome.not_finite else "it runs", not outcome.not_finite)


Looks = Callable[[Gathered], Shown | None]
Cures = Callable[[Gathered, Lab], Iterator[TriedCure]]


def no_cure(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    """Nothing that could be tried here."""
    return iter(())


@dataclass(frozen=True)
class CauseRule:
    """`look` is None where the cause does not show. `proven`: without a cure that held there is no claim, as for speed,
    where a guess is worth nothing; what it found then is undecided."""

    id: str
    symptom: Symptom
    says: str
    look: Looks
    cures: Cures = no_cure
    cites: tuple[str, ...] = ()
    remedy: str | None = None
    proven: bool = False

    def cause(self, shown: Shown, cures: tuple[TriedCure, ...]) -> Cause:
        remedy = None if any(cure.held for cure in cures) or self.remedy is None else self.remedy.format(**shown.named)
        return Cause(
            rule=self.id,
            symptom=self.symptom,
            sentence=self.says.format(**shown.named),
            shown_by=shown.facts,
            where=shown.where,
            cites=self.cites,
            cures=cures,
            remedy=remedy,
        )
