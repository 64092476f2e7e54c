"""From a complaint to causes in order: facts first, then rules, then every cure tried."""

from __future__ import annotations

from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright._scratch import scratch
from modelwright.answers import _rules_cost, _rules_fail, _rules_placement, _rules_wrong
from modelwright.answers._gather import AGREEMENT, GATE, Complaint, Gathered, gather
from modelwright.answers._log import LogReading
from modelwright.answers._reduce import reduced
from modelwright.answers._rule import CauseRule, Lab
from modelwright.answers._types import Cause, Diagnosis, TriedCure
from modelwright.errors import WrightError
from modelwright.measure import QUIETER
from modelwright.models import FileDigest, model_files
from modelwright.store import Store
from modelwright.vocabulary import OnProgress, Progress, silent

RULES: tuple[CauseRule, ...] = (
    *_rules_fail.RULES,
    *_rules_placement.RULES,
    *_rules_wrong.RULES,
    *_rules_cost.RULES,
)
"""In the order in which causes are told: what keeps it from running before what makes it wrong before what costs."""

_OWN_LOOK = {"output-missing": AGREEMENT, "gate-failed": GATE}
"""These are facts about one look; any other cause may be behind all that is wrong."""

_REAL = "give real samples as `data`"
_ONE_OF: tuple[tuple[str, ...], ...] = (
    ("fused-operators", "dynamic-sizes", "nodes-left"),
    ("chip-without-fp16", "ep-fails-on-part"),
    ("ep-broken", "ep-missing", "ep-no-device"),
    ("wrong-layout", "wrong-size"),
    ("missing-input", "wrong-layout", "wrong-size", "wrong-type"),
    ("inputs-not-finite", "fp16-overflow", "target-computes-no-numbers"),
)
"""Of each of these only the first that shows: the others are the same facts with a weaker word."""


@dataclass(frozen=True)
class OpenQuestion:
    """What could not be told, and what would tell it."""

    words: str
    fix: str


@dataclass(frozen=True)
class Concluded:
    causes: tuple[Cause, ...]
    undecided: tuple[OpenQuestion, ...]


def diagnose(
    complaint: Complaint,
    name: str,
    *,
    log: LogReading | None = None,
    smallest: Path | None = None,
    store: Store,
    on_progress: OnProgress | None = None,
) -> Diagnosis:
    """What is wrong with a model on a target, with the cures that were tried; the smallest model that fails so is
    written to `smallest`."""
    tell = on_progress or silent
    found = gather(complaint, store, on_progress)
    with scratch("diagnose") as folder:
        concluded = conclude(found, Lab(Path(folder), store, tell))
        small = None if smallest is None else reduced(found, Path(folder), smallest)
    questions = (*concluded.undecided, *_unanswered(found, concluded))
    return Diagnosis(
        model=name,
        target=str(complaint.target),
        symptom=complaint.symptom,
        causes=concluded.causes,
        looked_at=found.looked_at,
        undecided=tuple(one.words for one in questions),
        log=log,
        files=_files(complaint.model),
        smallest=small,
        next_steps=tuple(dict.fromkeys(one.fix for one in questions)),
    )


def conclude(found: Gathered, lab: Lab) -> Concluded:
    causes: list[Cause] = []
    undecided: list[OpenQuestion] = []
    seen: set[str] = set()
    for rule in RULES:
        if any(rule.id in group and seen & set(group) for group in _ONE_OF):
            continue
        shown = rule.look(found)
        if shown is None:
            continue
        lab.on_progress(Progress(f"trying what cures {rule.id}"))
        cures = tuple(rule.cures(found, lab))
        if rule.proven and not any(cure.held for cure in cures):
            undecided += [_open(rule, cure) for cure in cures if cure.held is None]
            continue
        seen.add(rule.id)
        causes.append(rule.cause(shown, cures))
    return Concluded(tuple(causes), tuple(undecided))


def _open(rule: CauseRule, cure: TriedCure) -> OpenQuestion:
    return OpenQuestion(f"cannot tell whether it is {rule.id}: {cure.after}", cure.fix or QUIETER)


def _unanswered(found: Gathered, concluded: Concluded) -> list[OpenQuestion]:
    """A symptom that somebody has and nothing here shows."""
    symptom = found.complaint.symptom
    if not concluded.causes and (unfed := _unfed(found)) is not None:
        return [OpenQuestion(f"cannot tell whether it runs: {unfed}", _REAL)]
    made_up = found.complaint.inputs.data.random and found.run is not None and found.run.not_finite
    if symptom is None and made_up and not concluded.causes:
        words = "cannot tell whether the answers are wrong: NaN or infinity are among them, from made-up inputs"
        return [OpenQuestion(words, _REAL)]
    if symptom is None:
        return [] if concluded.undecided else _unexplained(found, concluded)
    wrong = any(look.ok is False for look in found.looked_at)
    if any(cause.symptom == symptom for cause in concluded.causes) or (not wrong and symptom == "fails"):
        return []
    return [OpenQuestion(f"no cause was found for: {symptom}", _next(found))]


def _unexplained(found: Gathered, concluded: Concluded) -> list[OpenQuestion]:
    rules = {cause.rule for cause in concluded.causes}
    if rules - _OWN_LOOK.keys():
        return []
    own = {_OWN_LOOK[rule] for rule in rules}
    wrong = [look for look in found.looked_at if look.ok is False and look.what not in own]
    questions = [OpenQuestion(f"no cause was found for {look.what}: {look.said}", _next(found)) for look in wrong]
    return questions or ([] if rules else _not_compared(found))


def _unfed(found: Gathered) -> str | None:
    """Why nothing that was made up says whether it runs."""
    if found.unfed is not None:
        return found.unfed.words
    if found.refused is None or not found.doubtful_inputs:
        return None
    return f"{found.refused.words}, and its inputs are made up"


def _not_compared(found: Gathered) -> list[OpenQuestion]:
    """Who names a reference asks for exactly this."""
    fix = _REAL if found.uncompared is None else found.uncompared.fix
    looks = [look for look in found.looked_at if look.what == AGREEMENT and look.ok is None]
    return [OpenQuestion(f"cannot tell whether it agrees with its reference: {look.said}", fix) for look in looks]


def _next(found: Gathered) -> str:
    complaint = found.complaint
    if complaint.symptom in ("slow", "memory"):
        return "`wright perf --op-trace basic` shows where it goes; `bug_report` writes down what was seen"
    if complaint.symptom == "wrong" and complaint.reference is None:
        return "give the float model that it should agree with as `reference`"
    return "`bug_report` writes the smallest model that still shows it, and a report about it"


def _files(model: Path) -> tuple[FileDigest, ...]:
    try:
        return model_files(model)
    except WrightError:
        return ()
