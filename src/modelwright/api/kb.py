"""`modelwright.kb`: what is known, and how it is kept true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from modelwright import knowledge, search
from modelwright._scratch import scratch
from modelwright.api._kept import kept, verb
from modelwright.api._opened import opened
from modelwright.errors import UsageError
from modelwright.evidence import find_record
from modelwright.knowledge import (
    ExperimentResult,
    FindingPromotion,
    KbEvent,
    KbExplanation,
    KnowledgeBase,
    LintReport,
    Promoted,
    Standing,
    Verified,
)
from modelwright.models import onnx_of
from modelwright.search import ChangeQuestion
from modelwright.stages.optimize import try_passes
from modelwright.store import Store
from modelwright.targets import Target, parse_target
from modelwright.vocabulary import OnProgress, Progress, silent


def findings(
    *, status: str | None = None, target: str | None = None, kind: str | None = None, store: Store | None = None
) -> tuple[Standing, ...]:
    """Every finding with what follows from its evidence here and now; of one status, target or kind."""
    with opened(store) as place:
        every = KnowledgeBase(place).standings()
    wanted = None if target is None else str(parse_target(target))
    return tuple(
        one
        for one in every
        if status in (None, one.status) and wanted in (None, one.finding.target) and kind in (None, one.finding.kind)
    )


def finding(name: str, *, store: Store | None = None) -> Standing:
    with opened(store) as place:
        return KnowledgeBase(place).standing(name)


def history(name: str, *, store: Store | None = None) -> tuple[KbEvent, ...]:
    """What was said about a finding here, in order."""
    with opened(store) as place:
        return KnowledgeBase(place).history(name)


def lint(*, store: Store | None = None) -> LintReport:
    """Is everything there, as it was written, spelt right and called what its evidence allows?"""
    with opened(store) as place:
        return knowledge.lint(KnowledgeBase(place), knowledge.AXES, knowledge.SPECIMENS)


def add(record: str, *, says: str | None = None, store: Store | None = None) -> tuple[Standing, ...]:
    """Drafts of what a record of `tune` or `verify` shows; what is known already gets it as evidence instead."""
    with opened(store) as place:
        base, name = KnowledgeBase(place), find_record(place, record).key.digest
        if not base.evidence.observations(name):
            raise UsageError(
                f"the record {record} shows nothing that could be a finding",
                cause=base.evidence.problem(name) or "no change was proven or put out by its placement in it",
                fix="give a record of `wright tune` or `wright kb verify`: `wright show --list` lists them",
            )
        return tuple(base.standing(one) for one in knowledge.learn(base, name, says=says, origin=f"record {name[:12]}"))


@verb
def verify(
    finding: str,
    *,
    model: str | Path | None = None,
    budget_s: float = 60.0,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> Verified:
    """Run the experiment behind a finding from scratch on this machine, and keep what comes out as evidence.

    Both sides are built twice in stores that have nothing; then the target places them, or on a CPU they race.
    `model` is another model than those of the finding: that is how a finding gets beyond them.
    """
    tell = on_progress or silent
    with opened(store) as place:
        base = KnowledgeBase(place)
        known = base.standing(finding).finding
        why_not = _unverifiable(known, model)
        if why_not is not None:
            return Verified(finding, None, why_not[0], (), why_not[1])
        done = []
        for asked in _questions(known, model, budget_s):
            tell(Progress(f"{known.id} on {asked.name}"))
            found = search.experiment(asked, on_progress=on_progress)
            found = kept(replace(found, agrees=_agrees(found, known.expects)))
            if found.record_id is not None and found.word != "unknown":
                base.observe(finding, found.record_id)
            done.append(found)
    return _verified(finding, done)


def _unverifiable(known: knowledge.KbFinding, model: str | Path | None) -> tuple[str, str] | None:
    """Why no experiment can be made of it, and what to do instead."""
    rests = f"`wright kb show {known.id}` says what it rests on"
    if known.target is None or not known.changes or known.expects is None:
        return "it claims no change that this tool could make", rests
    if known.measure not in ("speed", "placement"):
        return f"it is about {known.measure}, which no experiment here decides", rests
    if (parse_target(known.target).device == "cpu") != (known.measure == "speed"):
        search = f"`wright tune MODEL --target {known.target}` where the device is"
        why = f"the {known.measure} of {known.target} cannot be asked by an experiment here"
        return why, f"{search}: what it proves becomes a finding of its own; {rests}"
    if known.models or model is not None:
        return None
    return "it names no model to try it on", "give one as `model`"


def _questions(known: knowledge.KbFinding, model: str | Path | None, budget_s: float) -> Iterator[ChangeQuestion]:
    assert known.target is not None
    target = parse_target(known.target)
    with scratch("specimens") as folder:
        for name in known.models if model is None else (str(model),):
            own = name in knowledge.SPECIMENS
            path = knowledge.make_specimen(name, Path(folder)) if own else onnx_of(name)
            yield ChangeQuestion(known.changes, target, path, path.stem, finding=known.id, budget_s=budget_s)


def _agrees(found: ExperimentResult, expects: str | None) -> bool | None:
    direction = found.direction
    return None if direction is None else direction == expects


def _verified(finding: str, done: Sequence[ExperimentResult]) -> Verified:
    answers = [one.agrees for one in done]
    against = [one.model for one in done if one.agrees is False]
    open_ = [f"{one.model}: {one.reason}" for one in done if one.agrees is None]
    if against:
        return Verified(finding, False, f"{', '.join(against)} said the opposite", tuple(done))
    if open_:
        return Verified(finding, None, "; ".join(open_), tuple(done), _longer(done))
    return Verified(finding, True, f"{len(answers)} of {len(answers)} models agree", tuple(done))


def _longer(done: Sequence[ExperimentResult]) -> str:
    if any(one.agrees is None and one.units for one in done):
        return "a larger `budget_s`, on a machine that does nothing else, decides more"
    return "give a model that it speaks about as `model`"


def promote(
    finding: str, *, by: str, reason: str, to: Promoted = "confirmed", store: Store | None = None
) -> FindingPromotion:
    """A person says that a finding holds. The checklist is filled in from its evidence; what does not meet it stays."""
    with opened(store) as place:
        return knowledge.promote(KnowledgeBase(place), finding, to, by=by, reason=reason, words=knowledge.AXES)


def retire(finding: str, *, by: str, reason: str, store: Store | None = None) -> Standing:
    """A person says that a finding does not hold. It stays to be seen, with the reason, and steers nothing."""
    with opened(store) as place:
        base = KnowledgeBase(place)
        base.decide(finding, "retracted", by, reason)
        return base.standing(finding)


def explain(model: str | Path, target: str | Target = "cpu", *, store: Store | None = None) -> KbExplanation:
    """What every rule says about changes of this model on this target, and why it may or may not be used."""
    where = parse_target(target)
    path = onnx_of(model)
    effects = try_passes(path)
    graph = knowledge.graph_facts(path, effects)
    with opened(store) as place:
        base = KnowledgeBase(place)
        spoken = (one.changes[0] for one in base.findings.values() if len(one.changes) == 1)
        changes = dict.fromkeys((*(f"+{one.name}" for one in effects if one.fired), *spoken))
        advice = knowledge.advise(base, graph, where, tuple(changes))
    return KbExplanation(str(model), str(where), graph.family, advice.insights)
