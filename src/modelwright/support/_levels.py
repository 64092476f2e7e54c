"""What each level asks for: measured values in, a word out. Pure, and with a version: whoever has the values can ask
again, and a level that asks for something else is another version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, NamedTuple

from modelwright._dataclass import dataclass
from modelwright._typed import typed
from modelwright.stages.validate import OutputParity, cosine_bound, is_quantized, judged_as
from modelwright.support._words import BlockedBy, Level, RowWord

INPUTS, SEEDS = 8, 3
"""So many inputs at least, of so many seeds each."""
SESSIONS = 5
FASTER = "faster than without the contribution, by a race"
STEPS, TEXTS = 8, 3
_FP32_COSINE, _FP32_ABS = 0.99999, 1e-3
_TAIL = 2.0


class LevelJudgement(NamedTuple):
    word: RowWord
    reasons: tuple[str, ...] = ()
    blocked_by: BlockedBy | None = None


@dataclass(frozen=True)
class Hindrance:
    """Why nothing could be measured: whose it is, what was said, and what was tried."""

    by: BlockedBy
    said: str
    tried: tuple[str, ...] = ()


@dataclass(frozen=True)
class OwedSeen:
    """An argument of the model's forward that is no input of any graph. `changes`: another value gave another answer;
    None where none could be made up. `listed` is the reason that the export gives for leaving it out; `general` is one
    that says nothing about this argument."""

    argument: str
    changes: bool | None
    listed: str | None
    general: bool = False


@dataclass(frozen=True, kw_only=True)
class StructureSeen:
    """L0. Pairs are what was claimed and what was found; None where there is nothing to compare."""

    failure: str | None = None
    hindrance: Hindrance | None = None
    checker: str | None = None
    opset: tuple[int | None, int | None] = (None, None)
    precision: tuple[str | None, str | None] = (None, None)
    vocabulary: tuple[int | None, int | None] = (None, None)
    labels: tuple[int | None, int | None] = (None, None)
    new_weights: tuple[str, ...] = ()
    owed: tuple[OwedSeen, ...] = ()
    outside: tuple[str, ...] = ()
    strangers: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunsSeen:
    """L1. `wanted` is the EP that was claimed, `bound` the one that computed; `exit` is how the child ended."""

    failure: str | None = None
    hindrance: Hindrance | None = None
    wanted: str = ""
    bound: str | None = None
    exit: int = 0
    inputs: int = 0
    asked: int = 0
    seeds: tuple[int, ...] = ()
    not_finite: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()
    nodes_per_ep: Mapping[str, int] = field(default_factory=dict, hash=False)
    simulated: bool = False
    engine: str | None = None
    real: bool = False
    fed: str | None = None


@dataclass(frozen=True)
class OutputSeen:
    """`largest` is the largest number of the reference: what is allowed follows from it."""

    parity: OutputParity
    largest: float


@dataclass(frozen=True, kw_only=True)
class ParitySeen:
    """L2. `foreign` are modules of families that the reference's process had loaded: then it is no reference.
    `texts` are how many of the greedy ones are equal, of how many; `steps` the shortest that was compared."""

    failure: str | None = None
    hindrance: Hindrance | None = None
    reference: str = ""
    foreign: tuple[str, ...] = ()
    precision: str = "fp32"
    on_chip: bool = False
    real: bool = False
    samples: int = 0
    seeds: tuple[int, ...] = ()
    outputs: tuple[OutputSeen, ...] = ()
    uncompared: tuple[str, ...] = ()
    writes: bool = False
    steps: int = 0
    texts: tuple[int, int] = (0, 0)


@dataclass(frozen=True, kw_only=True)
class TaskSeen:
    """L3, as the evaluation says it."""

    failure: str | None = None
    hindrance: Hindrance | None = None
    verdict: str | None = None
    metric: str | None = None
    max_drop: str | None = None
    candidate: float | None = None
    reference: float | None = None
    samples: int = 0
    data: str | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SpeedSeen:
    """L4. `compared` is the verdict of a race against the build without the contribution, where faster is claimed;
    `busy` says what else the machine did meanwhile, where that was much."""

    failure: str | None = None
    hindrance: Hindrance | None = None
    timing_valid: bool | None = None
    sessions: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None
    limit_ms: float | None = None
    faster: bool = False
    compared: str | None = None
    busy: str | None = None


@dataclass(frozen=True, kw_only=True)
class PortableSeen:
    """L5. `agree` names every other artifact with whether its answers are the same; `opened` the other runtime, and
    `moved_agrees` whether the moved folder answers the same there; `cpu` is the L2 word of the artifact for the CPU."""

    failure: str | None = None
    hindrance: Hindrance | None = None
    agree: Mapping[str, bool] = field(default_factory=dict, hash=False)
    opened: str | None = None
    moved_agrees: bool | None = None
    refused: str | None = None
    cpu: RowWord | None = None


AnySeen = StructureSeen | RunsSeen | ParitySeen | TaskSeen | SpeedSeen | PortableSeen


def judge_level(level: Level, measured: Mapping[str, Any]) -> LevelJudgement:
    """The word for values as a statement keeps them."""
    kind, judge, _ = JUDGES[level]
    return judge(typed(kind, measured, strict=True))


def rule(level: Level) -> str:
    """The function that gives the word of a level, with its version."""
    return JUDGES[level][2]


def _ended(seen: AnySeen) -> LevelJudgement | None:
    """What comes before every other question."""
    if seen.hindrance is not None:
        tried = (f"tried: {', '.join(seen.hindrance.tried)}",) if seen.hindrance.tried else ()
        return LevelJudgement("blocked", (seen.hindrance.said, *tried), seen.hindrance.by)
    return LevelJudgement("fail", (seen.failure,)) if seen.failure is not None else None


def _from(wrong: list[str], *good: str) -> LevelJudgement:
    return LevelJudgement("fail", tuple(wrong)) if wrong else LevelJudgement("pass", tuple(good))


def judge_structure(seen: StructureSeen) -> LevelJudgement:
    ended = _ended(seen)
    if ended is not None:
        return ended
    wrong = [] if seen.checker is None else [f"the ONNX checker: {seen.checker}"]
    for name in ("opset", "vocabulary", "labels"):
        claimed, found = getattr(seen, name)
        if claimed is not None and found is not None and claimed != found:
            wrong.append(f"{name}: {claimed} is claimed, it is {found}")
    claimed, found = seen.precision
    if claimed is not None and not precision_fits(claimed, found):
        wrong.append(f"precision: {claimed} is claimed, the weights are {found or 'not to be told'}")
    wrong += [f"{_few(seen.new_weights)} are newly made, and in no checkpoint"] if seen.new_weights else []
    wrong += [text for owed in seen.owed if (text := _missing(owed)) is not None]
    wrong += [f"external data outside the build: {_few(seen.outside)}"] if seen.outside else []
    wrong += [f"files that the build does not name: {_few(seen.strangers)}"] if seen.strangers else []
    wrong += list(seen.links)
    if not wrong and seen.unasked:
        return LevelJudgement("inconclusive", seen.unasked)
    return _from(wrong)


def _missing(owed: OwedSeen) -> str | None:
    if not owed.changes:
        return None
    if owed.listed is None:
        return f"{owed.argument} changes the answer, and is neither an input nor listed as left out"
    return f"{owed.argument} changes the answer, and no reason is given for leaving it out" if owed.general else None


def precision_fits(claimed: str, found: str | None) -> bool:
    """Whether weights that measure `found` are what was claimed; a part that was left in float is told as mixed."""
    first = claimed.split("+")[0]
    if found is None:
        return first.startswith("dynamic")
    if found == first or (first.startswith("dynamic") and found.startswith("dynamic")):
        return True
    if not is_quantized(first) or not found.startswith("mixed("):
        return False
    weights, _, activations = first[1:].partition("a")
    return f"w{weights}" in found and (f"a{activations}" in found or activations in ("16", "32"))


def judge_runs(seen: RunsSeen) -> LevelJudgement:
    ended = _ended(seen)
    if ended is not None:
        return ended
    wrong = []
    if seen.bound != seen.wanted:
        wrong.append(f"{seen.wanted} is claimed, {seen.bound or 'nothing'} computed")
    if seen.exit != 0:
        wrong.append(f"the process ended with {seen.exit}")
    wrong += [f"{_few(seen.not_finite)}: not finite"] if seen.not_finite else []
    wrong += [f"{_few(seen.constant)}: the same for every input"] if seen.constant else []
    if not wrong and seen.inputs < INPUTS:
        return LevelJudgement("inconclusive", (f"{seen.inputs} inputs ran, {INPUTS} are asked for",))
    nodes = ", ".join(f"{count} nodes on {ep}" for ep, count in sorted(seen.nodes_per_ep.items()))
    return _from(wrong, f"{seen.inputs} {'real ' if seen.real else ''}inputs" + (f", {nodes}" if nodes else ""))


def judge_parity(seen: ParitySeen) -> LevelJudgement:
    ended = _ended(seen)
    if ended is not None:
        return ended
    if seen.foreign:
        return LevelJudgement("fail", (f"the reference had loaded {_few(seen.foreign)}: it is none",))
    wrong = [text for one in seen.outputs if not one.parity.nothing for text in _unlike(one, seen)]
    nothing = [one.parity.output for one in seen.outputs if one.parity.nothing and any(_unlike(one, seen))]
    quantized = is_quantized(judged_as(seen.precision))
    if seen.writes:
        equal, asked = seen.texts
        if not quantized and seen.precision == "fp32" and not seen.on_chip and equal < asked:
            wrong.append(f"{equal} of {asked} greedy texts are PyTorch's")
    if wrong:
        return LevelJudgement("fail", tuple(wrong))
    few = [*_too_few(seen), *(f"{name} answers next to nothing, which tells nothing" for name in nothing)]
    if few:
        return LevelJudgement("inconclusive", tuple(few))
    if quantized and not seen.real:
        return LevelJudgement("inconclusive", ("made-up inputs can show that it is broken, never that it is good",))
    texts = (f"{seen.texts[0]} of {seen.texts[1]} greedy texts equal",) if seen.writes else ()
    return LevelJudgement("pass", (*_told(seen), *texts))


def _too_few(seen: ParitySeen) -> Iterator[str]:
    if not seen.outputs:
        yield "no output could be compared"
    if seen.writes:
        if seen.steps < STEPS or seen.texts[1] < TEXTS:
            yield f"{seen.texts[1]} texts of at least {seen.steps} steps; {TEXTS} of {STEPS} are asked for"
    elif seen.samples < INPUTS * SEEDS:
        yield f"{seen.samples} samples; {INPUTS} for each of {SEEDS} seeds are asked for"


def _unlike(one: OutputSeen, seen: ParitySeen) -> Iterator[str]:
    found = one.parity
    if found.reason is not None:
        yield f"{found.output}: {found.reason}"
        return
    for measure in found.measures:
        if not measure.passed:
            yield f"{found.output}: {measure.detail}"
    bound = parity_cosine(seen.precision, on_chip=seen.on_chip)
    if found.cosine is not None and found.cosine < bound:
        yield f"{found.output}: cosine {found.cosine:.6f}, needs {bound}"
    limit = _FP32_ABS * max(1.0, one.largest)
    if seen.precision == "fp32" and not seen.on_chip and found.max_abs is not None and found.max_abs > limit:
        yield f"{found.output}: max-abs {found.max_abs:.3g}, {limit:.3g} is allowed"


def parity_cosine(precision: str, *, on_chip: bool = False) -> float:
    """What the cosine of the worst output must reach; a chip computes floats as fp16 at best."""
    word = judged_as(precision)
    if word == "fp32":
        return cosine_bound("fp16") if on_chip else _FP32_COSINE
    return cosine_bound(word)


def _told(seen: ParitySeen) -> Iterator[str]:
    cosines = [one.parity.cosine for one in seen.outputs if one.parity.cosine is not None]
    if cosines:
        worst = max((one.parity.max_abs or 0.0) for one in seen.outputs)
        yield f"cosine {min(cosines):.7f}, max-abs {worst:.2g} over {seen.samples} samples"
    if seen.uncompared:
        yield f"only together with the others: {_few(seen.uncompared)}"


def judge_task(seen: TaskSeen) -> LevelJudgement:
    ended = _ended(seen)
    if ended is not None:
        return ended
    words: dict[str | None, RowWord] = {"pass": "pass", "fail": "fail"}
    told = (
        [] if seen.candidate is None else [f"{seen.metric} {seen.candidate:.4g}, reference {_number(seen.reference)}"]
    )
    return LevelJudgement(words.get(seen.verdict, "inconclusive"), (*told, *seen.reasons))


def judge_speed(seen: SpeedSeen) -> LevelJudgement:
    ended = _ended(seen)
    if ended is not None:
        return ended
    if not seen.timing_valid:
        return LevelJudgement("blocked", ("times that are measured here say nothing about the target",), "host")
    if seen.sessions < SESSIONS or seen.p50_ms is None or seen.p99_ms is None:
        return LevelJudgement("inconclusive", (f"{seen.sessions} sessions; {SESSIONS} fresh ones are asked for",))
    wrong = []
    if seen.p99_ms > _TAIL * seen.p50_ms:
        wrong.append(f"p99 {seen.p99_ms:.3g} ms is more than twice p50 {seen.p50_ms:.3g} ms")
    if seen.limit_ms is not None and seen.p50_ms > seen.limit_ms:
        wrong.append(f"p50 {seen.p50_ms:.3g} ms, {seen.limit_ms:.3g} ms is claimed")
    if wrong and seen.busy is not None:
        return LevelJudgement("inconclusive", (*wrong, seen.busy))
    if not wrong and seen.faster and seen.compared != "improved":
        word: RowWord = "inconclusive" if seen.compared in (None, "inconclusive") else "fail"
        return LevelJudgement(word, (f"faster is claimed, the race says {seen.compared or 'nothing'}",))
    faster = (FASTER,) if seen.faster else ()
    return _from(wrong, f"p50 {seen.p50_ms:.3g} ms, p99 {seen.p99_ms:.3g} ms in {seen.sessions} sessions", *faster)


def judge_portable(seen: PortableSeen) -> LevelJudgement:
    ended = _ended(seen)
    if ended is not None:
        return ended
    wrong = [f"its answers are not those of {name}" for name, same in seen.agree.items() if not same]
    if seen.moved_agrees is False:
        wrong.append(f"moved, and opened by {seen.opened}, it answers otherwise")
    if seen.cpu == "fail":
        wrong.append("the artifact for the CPU fails L2")
    if wrong:
        return LevelJudgement("fail", tuple(wrong))
    if seen.opened is None:
        return LevelJudgement("blocked", (seen.refused or "no other runtime is here to open it",), "host")
    if seen.cpu != "pass":
        return LevelJudgement("inconclusive", ("no artifact for the CPU passes L2",))
    others = (f"agrees with {', '.join(seen.agree)}",) if seen.agree else ()
    return LevelJudgement("pass", (*others, f"moved, {seen.opened} answers the same"))


JUDGES: Mapping[Level, tuple[type, Callable[[Any], LevelJudgement], str]] = {
    "L0": (StructureSeen, judge_structure, "L0-1"),
    "L1": (RunsSeen, judge_runs, "L1-1"),
    "L2": (ParitySeen, judge_parity, "L2-1"),
    "L3": (TaskSeen, judge_task, "L3-1"),
    "L4": (SpeedSeen, judge_speed, "L4-1"),
    "L5": (PortableSeen, judge_portable, "L5-1"),
}


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g}"


def _few(names: tuple[str, ...], shown: int = 3) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
