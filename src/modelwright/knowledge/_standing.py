"""How far a finding reaches, computed from its evidence and from what is installed here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from modelwright._installed import installed
from modelwright.knowledge._observe import Evidence
from modelwright.knowledge._types import RUNGS, KbFinding, Observation, Rung, Scope, Standing
from modelwright.targets import Target, parse_target

FRESH_BUILDS = 2
_CLASS_MODELS, _CLASSES = 2, 3
_RUNTIME = "onnxruntime"
_OPPOSITE = {"better": ("worse", "same"), "worse": ("better", "same"), "same": ("better", "worse")}


def standing(finding: KbFinding, evidence: Evidence, *, shipped: bool) -> Standing:
    every = [one for name in finding.evidence for one in evidence.observations(name) if _speaks(finding, one)]
    agreeing = tuple(one for one in every if finding.expects is not None and one.direction == finding.expects)
    against = tuple(one for one in every if one.direction in _OPPOSITE.get(finding.expects or "", ()))
    expired = _expired(finding, agreeing)
    return Standing(
        finding=finding,
        status="expired" if expired and finding.status in ("draft", "confirmed", "general") else finding.status,
        why=expired or finding.reason,
        rung=rung_of(agreeing),
        scope=_scope(finding, agreeing),
        agreeing=agreeing,
        contradicting=against,
        missing=tuple(name for name in finding.evidence if evidence.problem(name) is not None),
        shipped=shipped,
    )


def _speaks(finding: KbFinding, seen: Observation) -> bool:
    """About this very change, and about what is claimed: a placement says nothing about speed."""
    return seen.change == finding.change and (seen.left is not None) == (finding.measure == "placement")


def rung_of(agreeing: Iterable[Observation]) -> Rung:
    """Observed on one model; confirmed on fresh builds, decided; generalised to two models of one class; cross-cutting
    over three classes."""
    seen = list(agreeing)
    if not seen:
        return "none"
    confirmed = [one for one in seen if one.builds >= FRESH_BUILDS]
    if not confirmed:
        return "observed"
    models: dict[str, set[str]] = defaultdict(set)
    for one in confirmed:
        if one.family is not None:
            models[one.family].add(one.mark)
    if len(models) >= _CLASSES:
        return "cross-cutting"
    wide = any(len(names) >= _CLASS_MODELS for names in models.values())
    return "generalised" if wide else "confirmed"


def reaches(rung: Rung, wanted: Rung) -> bool:
    return RUNGS.index(rung) >= RUNGS.index(wanted)


def depends_on(finding: KbFinding) -> tuple[str, ...]:
    """Packages whose next version may do otherwise."""
    target = target_of(finding)
    return tuple(dict.fromkeys((_RUNTIME, *((target.provider.package,) if target is not None else ()))))


def target_of(finding: KbFinding) -> Target | None:
    return None if finding.target is None else parse_target(finding.target)


def _expired(finding: KbFinding, agreeing: tuple[Observation, ...]) -> str | None:
    """Why it may not hold any more: none of the evidence was found with what is installed here."""
    for name in depends_on(finding):
        here, seen = installed(name), {one.versions.get(name) for one in agreeing} - {None}
        if here is not None and seen and here not in seen:
            return f"seen with {name} {', '.join(sorted(map(str, seen)))}, and this is {here}: verify it again"
    return None


def _scope(finding: KbFinding, agreeing: tuple[Observation, ...]) -> Scope:
    versions: Mapping[str, tuple[str, ...]] = {
        name: found for name in depends_on(finding) if (found := _unique(one.versions.get(name) for one in agreeing))
    }
    return Scope(
        models=_unique(one.model for one in agreeing),
        families=_unique(one.family for one in agreeing),
        targets=_unique(one.target for one in agreeing),
        versions=versions,
        cpus=tuple(dict.fromkeys(one.cpu for one in agreeing if one.cpu is not None)),
        simulated=any(one.simulated for one in agreeing),
    )


def _unique(words: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({word for word in words if word is not None}))
