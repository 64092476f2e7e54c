"""Drafts: what a record shows becomes a finding that waits for a person, or evidence of one that is there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from modelwright.knowledge._base import KnowledgeBase
from modelwright.knowledge._standing import target_of
from modelwright.knowledge._types import KbFinding, Measure, Observation
from modelwright.targets import Target, parse_target

_WORDS = {"better": "helps", "worse": "hurts"}


def learn(
    base: KnowledgeBase, record: str, *, says: str | None = None, origin: str = "a search here"
) -> tuple[str, ...]:
    """The findings that this record speaks about: those there are, whichever way it speaks, and drafts for what is new.

    The same record twice changes nothing.
    """
    taken = (_taken(base, seen, says, origin) for seen in base.evidence.observations(record))
    return tuple(dict.fromkeys(name for name in taken if name is not None))


def _taken(base: KnowledgeBase, seen: Observation, says: str | None, origin: str) -> str | None:
    known = _known(base, seen)
    if known is None:
        drafted = _draft(seen, says, origin)
        if drafted is None:
            return None
        base.add(drafted)
        known = drafted.id
    if not any(_same(seen, one) for one in _observed(base, known)):
        base.observe(known, seen.record)
    return known


def _observed(base: KnowledgeBase, name: str) -> Iterator[Observation]:
    for record in base.findings[name].evidence:
        yield from base.evidence.observations(record)


def _same(one: Observation, other: Observation) -> bool:
    """The same model said the same with the same libraries: once is enough."""
    marks = [(seen.change, seen.mark, seen.direction, seen.builds, dict(seen.versions)) for seen in (one, other)]
    return marks[0] == marks[1]


def _known(base: KnowledgeBase, seen: Observation) -> str | None:
    """Ours and the user's own: what others published stays as they said it."""
    target = parse_target(seen.target)
    same = (
        one.id
        for one in base.findings.values()
        if (one.change, one.measure) == (seen.change, _measure(seen)) and not one.published and _about(one, target)
    )
    return next(same, None)


def _about(finding: KbFinding, target: Target) -> bool:
    wanted = target_of(finding)
    return wanted is not None and (wanted.ep, wanted.device) == (target.ep, target.device)


def _draft(seen: Observation, says: str | None, origin: str) -> KbFinding | None:
    if seen.direction not in _WORDS:
        return None
    target = parse_target(seen.target)
    name = str(Target(target.ep, target.device))
    way = _WORDS[seen.direction]
    where = "placement" if seen.left is not None else "speed"
    return KbFinding(
        id=f"{name}-{re.sub('[^a-z0-9]+', '-', seen.change.lower()).strip('-')}-{way}",
        kind="hazard" if way == "hurts" else "fact",
        says=says or f"{seen.change} {way} the {where} of {seen.model}",
        measure=_measure(seen),
        origin=origin,
        status="draft",
        reason="written down by a search; nobody has looked at it",
        target=name,
        changes=tuple(seen.change.split()),
        expects=seen.direction,
    )


def _measure(seen: Observation) -> Measure:
    return "placement" if seen.left is not None else "speed"
