"""Findings: what is claimed, what it rests on, and how far it may be used.

Stored is only what a person or a search said; scope, effect and rung are computed from evidence when somebody asks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal

from modelwright._dataclass import dataclass
from modelwright.evidence import Environment
from modelwright.judge import Finding
from modelwright.vocabulary import Result

FindingKind = Literal["fact", "hazard", "lesson"]
Measure = Literal["speed", "placement", "accuracy", "build", "method"]
Expects = Literal["better", "worse", "same"]
Status = Literal["draft", "quarantined", "adopted", "confirmed", "general", "retracted"]
"""What was decided. `quarantined` comes from elsewhere and is used for nothing until it is verified here; `adopted` is
what this product keeps to, as its `tests` hold. That a finding is expired is not decided but computed."""
Rung = Literal["none", "observed", "confirmed", "generalised", "cross-cutting"]
RUNGS: tuple[Rung, ...] = ("none", "observed", "confirmed", "generalised", "cross-cutting")


@dataclass(frozen=True)
class Published:
    """Medians in ms that somebody else published, without an interval: a hint, no evidence."""

    model: str
    before: float
    after: float

    @property
    def log_ratio(self) -> float:
        return math.log(self.before / self.after)


@dataclass(frozen=True)
class Mechanism:
    """Why it is so, apart from that it is so. `evidence` are the records that show it; without one it is a guess.
    `versions` are the packages it was seen in, `name` → version."""

    says: str
    evidence: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class KbFinding:
    """One finding as it is stored. `changes` are written as tune writes them (`+gelu_fusion`, `threads=1`); `foreign`
    are changes that other tools have and this one has no word for. `models` are specimens it can be verified on, or
    files. `reason` is why the status is what it is; `audit` what an audit of the data of others found credible.
    `tests` are those of this product that fail when it is forgotten; `family` is the model type it is about."""

    id: str
    kind: FindingKind
    says: str
    measure: Measure
    origin: str
    status: Status
    reason: str
    target: str | None = None
    changes: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    expects: Expects | None = None
    published: tuple[Published, ...] = ()
    audit: Literal["proven", "hazard"] | None = None
    mechanism: Mechanism | None = None
    evidence: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    family: str | None = None
    tests: tuple[str, ...] = ()

    @property
    def change(self) -> str:
        """All changes as one variant is called."""
        return " ".join(self.changes)


@dataclass(frozen=True)
class Observation:
    """What one record says about one change of one model on one target. `mark` is the model by content; `effect` is a
    log-ratio of times, base / arm, with its interval; `left` are nodes that the target does not take, before and after.
    """

    record: str
    change: str
    target: str
    model: str
    mark: str
    family: str | None
    word: str
    builds: int
    simulated: bool
    versions: Mapping[str, str]
    cpu: tuple[str, ...] | None
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    units: int = 0
    left: tuple[int, int] | None = None

    @property
    def direction(self) -> Expects | None:
        """None where nothing was decided, or nothing was changed."""
        if self.left is not None and self.word != "noop":
            before, after = self.left
            return "same" if before == after else "worse" if after > before else "better"
        return _DIRECTIONS.get(self.word)


_DIRECTIONS: Mapping[str, Expects] = {
    "improved": "better",
    "regressed": "worse",
    "equivalent": "same",
    "displaced": "worse",
    "taken": "better",
    "unmoved": "same",
}


@dataclass(frozen=True)
class Scope:
    """Where a finding was seen, computed from the evidence that agrees with it; nobody types it."""

    models: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cpus: tuple[tuple[str, ...], ...] = ()
    simulated: bool = False


@dataclass(frozen=True)
class Standing:
    """A finding with all that follows from its evidence here and now.

    `status` is the decided one, or `expired` where a library it depends on has another version here (`why` says which).
    `contradicted` are observations that say the opposite: they are kept, and while there are any nothing is pruned.
    """

    finding: KbFinding
    status: Status | Literal["expired"]
    why: str
    rung: Rung
    scope: Scope
    agreeing: tuple[Observation, ...]
    contradicting: tuple[Observation, ...]
    missing: tuple[str, ...] = ()
    shipped: bool = True

    @property
    def effects(self) -> tuple[Observation, ...]:
        return tuple(one for one in self.agreeing if one.effect is not None)

    @property
    def steers(self) -> bool:
        """May it change the order of a search?"""
        return self.status in ("draft", "confirmed", "general") and not self.missing

    @property
    def prunes(self) -> bool:
        """May it leave something out?"""
        return self.status in ("confirmed", "general") and not self.contradicting and not self.missing


@dataclass(frozen=True)
class ExperimentSide:
    """One side of an experiment: the graph by content, each fresh build of it, its operators, and what the target
    leaves to the CPU (None on a CPU)."""

    fingerprint: str
    builds: tuple[str, ...]
    operators: Mapping[str, int]
    left: Mapping[str, int] | None = None
    running: int | None = None


@dataclass(frozen=True)
class ExperimentUnit:
    """One unit of a race, burst by burst in ns; `sentinel` is the base against itself."""

    sentinel: bool
    base_first: bool
    base_ns: tuple[tuple[int, ...], ...]
    arm_ns: tuple[tuple[int, ...], ...]

    @property
    def legs_ms(self) -> tuple[list[list[float]], list[list[float]]]:
        """The base's and the arm's, as the judge takes them."""
        base, arm = ([[ns / 1e6 for ns in burst] for burst in leg] for leg in (self.base_ns, self.arm_ns))
        return base, arm


@dataclass(frozen=True)
class ExperimentResult(Result):
    """One change of one model, built from scratch and held against the model without it. `word` is the judge's, or
    `displaced`, `taken`, `unmoved` for a placement, or `unknown` with the reason. Every sample is in it."""

    kind: ClassVar[str] = "experiment"

    finding: str | None
    change: str
    target: str
    measure: Measure
    model: str
    family: str
    word: str
    reason: str
    base: ExperimentSide | None
    arm: ExperimentSide | None
    speed: Finding | None
    units: tuple[ExperimentUnit, ...]
    simulated: bool
    environment: Environment
    agrees: bool | None = None

    @property
    def direction(self) -> Expects | None:
        """None where nothing was decided."""
        return _DIRECTIONS.get(self.word)


@dataclass(frozen=True)
class Verified(Result):
    """A finding tried again: `reproduced` is None where nobody could be asked or nothing was decided; then `next` says
    what to do."""

    kind: ClassVar[str] = "kb verify"

    finding: str
    reproduced: bool | None
    reason: str
    experiments: tuple[ExperimentResult, ...]
    next: str | None = None
