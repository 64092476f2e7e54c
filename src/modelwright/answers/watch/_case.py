"""One artifact on both sides: does it run, answer the same, lie on the same EPs, take as much memory and time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from modelwright import measure
from modelwright._dataclass import dataclass
from modelwright.answers.watch._types import HERE, NewOldRatio, WatchCase, WatchedModel, WatchRow, WatchSuite
from modelwright.errors import WrightError
from modelwright.judge import Judge, Verdict, forecast
from modelwright.measure import Arm, ArmResult, CompareResult, InputChoice, Outputs, ReadyArm, Subject
from modelwright.vocabulary import OnProgress, Progress, as_data

if TYPE_CHECKING:
    from modelwright.targets import SessionFacts

_INPUTS = 3
_MB = 1e6
Race = Callable[[WatchSuite, Sequence[Arm], WatchedModel], CompareResult]
"""Times both sides in turns; what keeps it from that is a WrightError."""


@dataclass(frozen=True, eq=False)
class _Answered:
    """What a side is bound to, and what it answers to every input."""

    facts: SessionFacts
    answers: tuple[Outputs, ...]


def watch_case(
    suite: WatchSuite, case: WatchedModel, subjects: Sequence[Subject], race: Race, tell: OnProgress
) -> WatchCase:
    tell(Progress(f"{case.name}: opening it on both sides"))
    arms = {side: [_ready(suite, case, side, subject) for subject in subjects] for side in ("old", "new")}
    answered = {side: _answered(every) for side, every in arms.items()}
    old, new = answered["old"], answered["new"]
    found = WatchCase(
        name=case.name,
        model=case.model.name,
        target=case.target,
        files=subjects[0].files,
        old=old.facts.engine if isinstance(old, _Answered) else None,
        new=new.facts.engine if isinstance(new, _Answered) else None,
        rows=(_runs(old, new),),
    )
    if not isinstance(old, _Answered) or not isinstance(new, _Answered):
        return found
    first = (arms["old"][0], arms["new"][0])
    accuracy, placement = _accuracy(old, new, first[1], real=case.data is not None), placement_row(old.facts, new.facts)
    rows = (*found.rows, accuracy, placement)
    moved = _moved(*first) if placement.passed is False else ()
    tell(Progress(f"{case.name}: timing both sides in turns"))
    speed, speed_row, operators = _speed(suite, case, first, race, tell)
    tell(Progress(f"{case.name}: memory"))
    memory, memory_row = _memory(suite, *first)
    return replace(
        found, rows=(*rows, memory_row, speed_row), speed=speed, memory=memory, operators=operators, moved=moved
    )


def case_subjects(case: WatchedModel) -> list[Subject]:
    """Up to three different inputs for it. What keeps it from any is told with its name."""
    found: dict[str, Subject] = {}
    data = as_data(case.data)
    try:
        for seed in range(_INPUTS):
            subject = measure.make_subject(case.model, InputChoice(replace(data, seed=seed)))
            found.setdefault(measure.inputs_digest(subject), subject)
    except WrightError as error:
        error.problem = f"{case.name}: {error.problem}"
        raise
    return list(found.values())


def arm_of(suite: WatchSuite, case: WatchedModel, side: str) -> Arm:
    where = getattr(suite, side)
    return Arm(
        str(case.model), side, target=case.target, runtime=None if where == HERE else where, threads=case.threads
    )


def _ready(suite: WatchSuite, case: WatchedModel, side: str, subject: Subject) -> ReadyArm:
    return measure.ready_arm(arm_of(suite, case, side), subject, case.target, None)


def _answered(arms: Sequence[ReadyArm]) -> _Answered | str:
    """Or why it does not run."""
    runner, facts, answers = measure.UnitRunner(measure.unit_plan(arms), fresh_processes=False), None, []
    try:
        for arm in arms:
            facts = runner.opened(arm, 0)
            answers.append(runner.answers(arm, 0))
    except WrightError as error:
        return f"{error.problem}: {error.cause}"
    finally:
        runner.close()
    assert facts is not None
    return _Answered(facts, tuple(answers))


def _runs(old: _Answered | str, new: _Answered | str) -> WatchRow:
    if isinstance(old, str):
        also = f"; the new side: {new}" if isinstance(new, str) else ""
        words = f"the old side does not run it: {old}{also}"
        return WatchRow("runs", None, words, fix="name an `old` side that runs it, or take the case out of the suite")
    if isinstance(new, str):
        return WatchRow("runs", False, f"the new side does not run it: {new}")
    return WatchRow("runs", True, f"{old.facts.engine} and {new.facts.engine}")


def _accuracy(old: _Answered, new: _Answered, arm: ReadyArm, *, real: bool) -> WatchRow:
    """The same file on both sides, so by the bound of its own precision."""
    checks = [
        measure.check_outputs(theirs, ours, arm.tolerance)
        for theirs, ours in zip(old.answers, new.answers, strict=True)
    ]
    unlike = measure.first_unlike(checks)
    fed = f"{len(checks)} {'real' if real else 'made-up'} input{'s' if len(checks) > 1 else ''}"
    if unlike is not None and unlike.nothing:
        words = f"nobody can tell on {fed}: {unlike.different}"
        return WatchRow("accuracy", None, words, fix="give the case `data` in which there is something")
    if unlike is not None:
        return WatchRow("accuracy", False, f"other answers on {fed}: {unlike.different}")
    if not any(map(measure.says_something, old.answers)):
        words = f"nothing but NaN and infinity came out on {fed}, on both sides"
        return WatchRow("accuracy", None, words, fix="give the case `data` that it computes numbers from")
    most = max((check.max_abs for check in checks if check.max_abs is not None), default=0.0)
    return WatchRow("accuracy", True, f"the same answers on {fed}, {most:.2g} apart at most")


def placement_row(old: SessionFacts, new: SessionFacts) -> WatchRow:
    """By the share of the nodes that the target's EP has; fusions change their number."""
    words = f"{_counts(old.nodes_per_ep)} before, {_counts(new.nodes_per_ep)} now"
    before, now = old.placed_share, new.placed_share
    if before is None or now is None:
        who = " and ".join(side for side, share in (("old", before), ("new", now)) if share is None)
        if old.ep == "CPUExecutionProvider":
            return WatchRow("placement", True, f"the target is the CPU itself; the {who} side does not tell nodes")
        words = f"the {who} side does not tell which EP has which node"
        return WatchRow("placement", None, words, fix="name sides whose onnxruntime does, or trace both")
    if now < before:
        return WatchRow("placement", False, f"{old.ep} has less of the graph: {words}")
    return WatchRow("placement", True, words if now == before else f"{old.ep} has more of the graph: {words}")


def _counts(nodes: Mapping[str, int]) -> str:
    return ", ".join(f"{ep} {count}" for ep, count in sorted(nodes.items()))


def _moved(old: ReadyArm, new: ReadyArm) -> tuple[str, ...]:
    """Operators that another EP has now, by a trace of both sides."""
    try:
        before, now = (_providers(arm) for arm in (old, new))
    except WrightError as error:
        return (f"which ones is not known: {error.problem}: {error.cause}",)
    both = sorted(before.keys() & now.keys())
    return tuple(f"{name}: {before[name]} -> {now[name]}" for name in both if before[name] != now[name])


def _providers(arm: ReadyArm) -> dict[str, str]:
    found = measure.traced_operators(arm)
    return {f"{operator.op_type} {node}": operator.provider for operator in found for node in operator.onnx_nodes}


def _memory(suite: WatchSuite, old: ReadyArm, new: ReadyArm) -> tuple[NewOldRatio | None, WatchRow]:
    """Peaks of fresh processes, in random order, until the judge knows or the time is over."""
    judge, runner = (
        Judge(suite.max_growth / 2, suite.each_alpha),
        measure.UnitRunner(measure.unit_plan([old]), fresh_processes=True),
    )
    peaks, began, coin = (list[int](), list[int]()), time.monotonic(), random.Random()
    while judge.within(suite.max_growth) is None and time.monotonic() < began + suite.budget_s / 2:
        order = [(0, old), (1, new)]
        coin.shuffle(order)
        for side, arm in order:
            peak = runner.peak_bytes(arm)
            if peak is None:
                words = "this system does not tell what a process takes"
                return None, WatchRow("memory", None, words, fix="watch it on a system that does: Linux, or Windows")
            peaks[side].append(peak)
        judge.add(base=[float(peaks[0][-1])], arm=[float(peaks[1][-1])])
    return memory_answer(judge, suite.max_growth, peaks, time.monotonic() - began)


def memory_answer(
    judge: Judge, most: float, peaks: tuple[list[int], list[int]], spent_s: float
) -> tuple[NewOldRatio, WatchRow]:
    verdict, within = judge.verdict(), judge.within(most)
    ratio = NewOldRatio(verdict.effect, verdict.low, verdict.high, verdict.units)
    middles = [sorted(side)[len(side) // 2] / _MB for side in peaks]
    pairs = f"{verdict.units} pair{'s' if verdict.units != 1 else ''}"
    words = f"{middles[0]:.1f} MB before, {middles[1]:.1f} MB now (peak of a process, {pairs})"
    ends = {
        True: f"no more than {most:.0%} more, proven",
        False: f"more than {most:.0%} more, proven",
        None: f"whether that is more than {most:.0%} more is not decided",
    }
    enough = _foreseen(verdict)
    needed_s = None if enough is None else 2 * spent_s * enough / verdict.units  # half of the budget is for memory
    fix = None if within is not None else measure.more_budget(needed_s, 2 * spent_s) + _at_limit(verdict, "max_growth")
    return ratio, WatchRow("memory", within, f"{words}: {ends[within]}", fix=fix)


def _foreseen(verdict: Verdict) -> int | None:
    """Units after which this noise leaves nothing open."""
    if verdict.noise is None:
        return None
    return forecast(verdict.noise, verdict.min_effect, alpha=verdict.alpha).units_to_equate


def _at_limit(verdict: Verdict, limit: str) -> str:
    """What stays open longer than its noise explains may lie where no number of units decides."""
    enough = _foreseen(verdict)
    return "" if enough is None or verdict.units < enough else f"; it may lie at the limit: allow another {limit}"


def _speed(
    suite: WatchSuite, case: WatchedModel, ready: tuple[ReadyArm, ReadyArm], race: Race, tell: OnProgress
) -> tuple[NewOldRatio | None, WatchRow, measure.OperatorChanges | None]:
    try:
        found = race(suite, [arm_of(suite, case, "old"), arm_of(suite, case, "new")], case)
    except WrightError as error:
        words = f"not timed: {error.problem}: {error.cause}"
        return None, WatchRow("speed", None, words, fix=error.fix), None
    arm = found.arms[1]
    ratio, row = speed_answer(arm, found)
    blame = measure.traced_changes(*ready, arm, tell) if row.passed is False else None
    return ratio, row, blame


def speed_answer(arm: ArmResult, race: CompareResult) -> tuple[NewOldRatio | None, WatchRow]:
    record = race.record_id
    if arm.facts is not None and arm.facts.simulated:
        words = "not timed: a simulator computes here, and its times mean nothing"
        return None, WatchRow("speed", None, words, record, "watch it on a machine that has the device")
    if arm.failure is not None or arm.verdict is None:
        alone = f"time it alone: `wright perf` on {arm.target} tells more"
        return None, WatchRow("speed", None, f"not timed: {arm.failure or arm.sentence}", record, alone)
    verdict = arm.verdict.by[0]
    ratio = NewOldRatio(verdict.effect, verdict.low, verdict.high, verdict.units)
    fix = measure.what_settles(arm, race) + _at_limit(verdict, "max_slowdown") if arm.within is None else None
    return ratio, WatchRow("speed", arm.within, f"{_gate_words(arm.within, race)}: {arm.sentence}", record, fix)


def _gate_words(within: bool | None, race: CompareResult) -> str:
    """What was asked comes first: slower by a little is ok, and the race alone may leave that little open."""
    limit = f"more than {race.options.max_slowdown or 0:.0%} slower"
    return {True: f"not {limit}, proven", False: f"{limit}, proven", None: f"not decided whether it is {limit}"}[within]
