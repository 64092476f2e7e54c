"""Promotion: a person decides, and the tool says what there is to decide on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from modelwright._dataclass import dataclass
from modelwright._installed import installed
from modelwright.knowledge._base import KnowledgeBase
from modelwright.knowledge._lint import rejudged
from modelwright.knowledge._standing import depends_on, reaches
from modelwright.knowledge._types import ExperimentResult, Rung, Standing
from modelwright.knowledge._words import misspelt
from modelwright.vocabulary import Result

Promoted = Literal["confirmed", "general"]
NEEDED: dict[Promoted, Rung] = {"confirmed": "confirmed", "general": "generalised"}
_NOTHING = "no experiment to judge: `wright kb verify` makes one, or says why it cannot"


@dataclass(frozen=True)
class CheckItem:
    what: str
    holds: bool
    detail: str


@dataclass(frozen=True)
class FindingPromotion(Result):
    """`done` is false where the checklist is not met: then nothing was decided."""

    kind: ClassVar[str] = "kb promote"

    finding: str
    to: Promoted
    by: str
    done: bool
    checklist: tuple[CheckItem, ...]


def promote(
    base: KnowledgeBase, name: str, to: Promoted, *, by: str, reason: str, words: Sequence[str]
) -> FindingPromotion:
    """`words` are the axes of a search. Where an item does not hold the finding stays as it is."""
    items = tuple(_checklist(base, base.standing(name), to, words))
    done = all(item.holds for item in items)
    if done:
        base.decide(name, to, by, reason)
    return FindingPromotion(name, to, by, done, items)


def _checklist(base: KnowledgeBase, one: Standing, to: Promoted, words: Sequence[str]) -> Iterator[CheckItem]:
    finding = one.finding
    wrong = misspelt(finding, words, finding.models)
    yield CheckItem("every word is known", not wrong, "; ".join(wrong) or finding.change)
    whole = not one.missing and bool(finding.evidence)
    yield CheckItem("its records are there and as they were", whole, f"{len(finding.evidence)} records")
    yield CheckItem(f"its evidence reaches '{NEEDED[to]}'", reaches(one.rung, NEEDED[to]), f"it reaches '{one.rung}'")
    against = ", ".join(seen.record[:12] for seen in one.contradicting)
    yield CheckItem("nothing contradicts it", not one.contradicting, against or "no record does")
    yield _versions(one)
    retracted = finding.status == "retracted"
    yield CheckItem("it was not retracted", not retracted, finding.reason if retracted else f"it is '{one.status}'")
    yield _builds(base, one)
    yield _judged(base, one)


def _versions(one: Standing) -> CheckItem:
    """Where nothing was seen, or a package is not here, nothing was seen with what is installed."""
    here = {name: installed(name) for name in depends_on(one.finding)}
    known = {name: {seen.versions.get(name) for seen in one.agreeing} - {None} for name in here}
    unseen = [f"{name} {version or 'is not installed'}" for name, version in here.items() if version not in known[name]]
    detail = "; ".join(unseen) or ", ".join(f"{name} {version}" for name, version in here.items())
    return CheckItem("it was seen with what is installed here", not unseen, detail)


def _experiments(base: KnowledgeBase, one: Standing) -> list[ExperimentResult]:
    records = (base.evidence.record(seen.record) for seen in one.agreeing)
    return [found.payload for found in records if found is not None and isinstance(found.payload, ExperimentResult)]


def _builds(base: KnowledgeBase, one: Standing) -> CheckItem:
    sides = [side for found in _experiments(base, one) for side in (found.base, found.arm) if side is not None]
    other = sum(len(set(side.builds)) > 1 for side in sides)
    detail = f"{other} of {len(sides)} sides were another graph when built again" if other else f"{len(sides)} sides"
    return CheckItem("two builds of a side are one graph", bool(sides) and not other, detail if sides else _NOTHING)


def _judged(base: KnowledgeBase, one: Standing) -> CheckItem:
    what = "verdicts follow from their samples, with a sentinel"
    if one.finding.measure == "placement":
        return CheckItem(what, True, "nothing was timed: it is about placement")
    raced = [found for found in _experiments(base, one) if found.speed is not None]
    wrong = sum(found.speed is not None and rejudged(found) != found.speed.kind.value for found in raced)
    blind = sum(not any(unit.sentinel for unit in found.units) for found in raced)
    detail = f"{wrong} of {len(raced)} verdicts do not follow, {blind} had no baseline against itself"
    return CheckItem(what, bool(raced) and not wrong and not blind, detail if raced else _NOTHING)
