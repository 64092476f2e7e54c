"""What `diagnose` answers: causes in order, each with what shows it and the cures that were tried."""

from __future__ import annotations

from typing import ClassVar, Literal

from modelwright._dataclass import dataclass
from modelwright.answers._log import LogReading
from modelwright.models import FileDigest
from modelwright.vocabulary import Result

Symptom = Literal["slow", "wrong", "fails", "memory"]
SYMPTOMS: tuple[Symptom, ...] = ("slow", "wrong", "fails", "memory")
DIAGNOSE_PROTOCOL = "diagnose-1"
_NOTHING = "nothing wrong was found"


@dataclass(frozen=True)
class TriedCure:
    """A change that was tried on this model. `held`: the symptom was gone then; None where that is not decided, and
    `fix` is what decides it. `how` says it as a command or a setting does."""

    title: str
    how: str
    before: str
    after: str
    held: bool | None
    fix: str | None = None


@dataclass(frozen=True)
class Cause:
    """`rule` is the word for it. `shown_by` are the facts that show it, in words; `where` the operators or tensors that
    it is about; `cites` findings of the knowledge base and pages. `remedy` is what to do where nothing could be tried.
    """

    rule: str
    symptom: Symptom
    sentence: str
    shown_by: tuple[str, ...]
    where: tuple[str, ...] = ()
    cites: tuple[str, ...] = ()
    cures: tuple[TriedCure, ...] = ()
    remedy: str | None = None

    @property
    def cured(self) -> bool:
        return any(cure.held for cure in self.cures)


@dataclass(frozen=True)
class LookedAt:
    """One thing that was looked at, and what it said; `ok` None where it could not be told."""

    what: str
    said: str
    ok: bool | None


@dataclass(frozen=True)
class SmallestModel:
    """What is left when everything was cut off that does not change the symptom. `minimal`: nothing more can go."""

    path: str
    operators: tuple[str, ...]
    of: int
    symptom: str
    minimal: bool
    tries: int
    digest: str


@dataclass(frozen=True)
class Diagnosis(Result):
    """The first cause is the likeliest. `undecided` are questions that could not be answered, with the reason; a
    symptom among them has no answer yet. `next_steps` are what would answer them."""

    kind: ClassVar[str] = "diagnose"

    model: str | None
    target: str | None
    symptom: Symptom | None
    causes: tuple[Cause, ...]
    looked_at: tuple[LookedAt, ...]
    undecided: tuple[str, ...]
    log: LogReading | None = None
    files: tuple[FileDigest, ...] = ()
    smallest: SmallestModel | None = None
    next_steps: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool | None:
        """True: nothing wrong was found. False: a cause was. None: something is open, or wrong without a cause."""
        if self.causes or (self.log is not None and self.log.explained):
            return False
        wrong = any(look.ok is False for look in self.looked_at)
        noisy = self.log is not None and bool(self.log.unknown or self.log.causes)
        return None if self.undecided or wrong or noisy else True

    @property
    def without_cause(self) -> str:
        """The answer where no cause is named: what could not be asked is not called good."""
        unknown = ", ".join(look.what for look in self.looked_at if look.ok is None)
        complained = self.symptom is not None or self.log is not None
        wrong = any(look.ok is False for look in self.looked_at)
        if self.healthy is None and (complained or wrong or not unknown):
            return "no cause was found"
        return f"{_NOTHING} in what could be asked; not known: {unknown}" if unknown else _NOTHING
