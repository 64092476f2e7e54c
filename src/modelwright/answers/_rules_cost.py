"""Why a model is slow, or takes too much memory: every claim is a measurement of it beside the cure, or is not made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from modelwright import measure
from modelwright._dataclass import dataclass
from modelwright.answers._gather import Complaint, Gathered, Refused, attempt
from modelwright.answers._made import optimized, quantize_again
from modelwright.answers._rule import CauseRule, Lab, Shown
from modelwright.answers._types import TriedCure
from modelwright.errors import WrightError
from modelwright.judge import Finding, VerdictKind
from modelwright.measure import Arm, CompareOptions, CompareResult, PerfOptions, PerfResult
from modelwright.stages.optimize import PRESETS, OptimizeParams
from modelwright.targets import usable_cpus

_DENORMALS = "session.set_denormal_as_zero"
_PREPACKING = "session.disable_prepacking"
_ARENA = "enable_cpu_mem_arena"
_TIMES, _CLEARLY, _LESS = 4, 1.3, 1.1
_LONG_LOAD_S = 0.1
_GAIN = 0.05
_HELD: dict[VerdictKind, bool | None] = {
    VerdictKind.IMPROVED: True,
    VerdictKind.EQUIVALENT: False,
    VerdictKind.REGRESSED: False,
}


@dataclass(frozen=True)
class Gauge:
    """What is read of a session, how far apart two sides of it have to be, and how it is said."""

    read: Callable[[Complaint], float | None]
    clearly: float
    words: Callable[[float], str]


def arm_of(complaint: Complaint, name: str, **changes: object) -> Arm:
    session = complaint.session
    arm = Arm(
        str(complaint.model),
        name=name,
        target=str(complaint.target),
        threads=session.threads,
        level=session.level,
        options=dict(session.provider_options),
        config=dict(session.config),
    )
    return replace(arm, **changes)  # type: ignore[arg-type]


def raced(found: Gathered, base: Arm, other: Arm, *, explain: bool = False) -> CompareResult | Refused:
    complaint = found.complaint
    options = CompareOptions(
        target=str(complaint.target), inputs=complaint.inputs, budget_s=complaint.budget_s, allow_different=True
    )
    try:
        return measure.compare((base, other), options, explain=measure.explained if explain else None)
    except WrightError as error:
        return Refused(error.problem, error.cause, error.fix)


def _race_of(found: Gathered, title: str, how: str, **changes: object) -> TriedCure:
    base = arm_of(found.complaint, "as it is")
    return _told(title, how, raced(found, base, arm_of(found.complaint, "changed", **changes)))


def _told(title: str, how: str, result: CompareResult | Refused) -> TriedCure:
    if isinstance(result, Refused):
        return TriedCure(title, how, "as it is", result.words, None, result.fix)
    base, other = result.arms
    if other.verdict is None:
        return TriedCure(title, how, "as it is", str(other.refused or other.failure or "not measured"), None)
    before = f"{base.times_ms[-1]:.3g} ms" if base.times_ms and base.times_ms[-1] else "as it is"
    held = _HELD.get(other.verdict.kind)
    held = held and _worth(other.verdict)
    fix = measure.what_settles(other, result) if held is None else None
    return TriedCure(title, how, before, other.sentence, held, fix)


def _worth(found: Finding) -> bool:
    """What is faster by less is no cure of what somebody calls slow."""
    return max((verdict.effect or 0.0 for verdict in found.proven), default=0.0) >= _GAIN


def _slow(found: Gathered) -> bool:
    return found.complaint.symptom == "slow" and found.runs


def _threads(found: Gathered) -> Shown | None:
    asked, here = found.complaint.session.threads, _cpus()
    if not _slow(found) or asked is None or asked <= here:
        return None
    cpus = "one CPU" if here == 1 else f"{here} CPUs"
    return Shown((f"{asked} threads, and this process may use {cpus}",), (), {"threads": str(asked), "cpus": cpus})


def _fewer_threads(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    """A few runs of each by turns first: threads that wait for each other make a race take minutes."""
    title, how = "As many threads as CPUs", f"`threads` {_cpus()}"
    changed = replace(found.complaint, session=replace(found.complaint.session, threads=_cpus()))
    quick = _by_turns(found, title, how, changed, _AVERAGE)
    yield quick if quick.held else _race_of(found, title, how, threads=_cpus())


def _average_ms(complaint: Complaint) -> float | None:
    """The average, not the typical run: threads that wait for a CPU stall a few runs for long."""
    found = perf_of(complaint, iterations=30)
    return None if found is None or found.latency is None else found.latency.mean_ms


def _cpus() -> int:
    """Whole ones, at least one: a quota may be a part of one."""
    return max(1, int(usable_cpus()))


def _level(found: Gathered) -> Shown | None:
    level = found.complaint.session.level
    return (
        Shown((f"graph_optimization_level is {level}",), (), {"level": level})
        if _slow(found) and level != "all"
        else None
    )


def _optimizing(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    yield _race_of(found, "Let onnxruntime optimize the graph", "level=all", level="all")


def _denormal(found: Gathered) -> Shown | None:
    names = () if found.weights is None else found.weights.denormal
    if not _slow(found) or not names or found.complaint.session.config.get(_DENORMALS) == "1":
        return None
    facts = tuple(f"{share:.0%} of {name} is smaller than any normal number" for name, share in names[:4])
    return Shown(facts, tuple(name for name, _ in names), {"weights": ", ".join(name for name, _ in names[:3])})


def _flushed(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    config = {**found.complaint.session.config, _DENORMALS: "1"}
    yield _race_of(found, "Take them for zero", f"config.{_DENORMALS}=1", config=config)


def _half(found: Gathered) -> Shown | None:
    label = None if found.model is None else found.model.precision.label
    if not _slow(found) or label not in ("fp16", "float16") or found.complaint.target.ep != "cpu":
        return None
    if found.complaint.reference is None:
        return None
    return Shown(("onnxruntime's CPU provider casts float16 to float32 around most operators",))


def _float_instead(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    yield _race_of(found, "The float32 model", "`precision` fp32", model=str(found.complaint.reference))


def _quantized(found: Gathered) -> Shown | None:
    if not _slow(found) or found.complaint.reference is None or found.model is None or not found.model.quantized:
        return None
    base = arm_of(found.complaint, "float", model=str(found.complaint.reference))
    result = raced(found, base, arm_of(found.complaint, "quantized"), explain=True)
    if isinstance(result, Refused) or result.arms[1].verdict is None:
        return None
    if result.arms[1].verdict.kind is not VerdictKind.REGRESSED:
        return None
    changes = result.arms[1].operators
    slower = [] if changes is None else [row for row in changes.changes if row.slower]
    rows = tuple(f"{row.op_type} {row.difference_ms:+.2g} ms: {row.why}" for row in slower)
    named = {"ops": ", ".join(row.op_type for row in slower[:3]) or "its operators"}
    return Shown((result.arms[1].sentence, *rows), tuple(row.op_type for row in slower), named)


def _paying(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    """Only what pays is quantized by the recipe for the target; else it stays float."""
    if not found.complaint.inputs.data.random:
        made = quantize_again(found.complaint, found.model, lab.store)
        if made is not None:
            yield _race_of(
                found, "Quantize only what pays", f"`wright build --target {found.complaint.target}`", model=str(made)
            )
    yield _float_instead_cure(found)


def _float_instead_cure(found: Gathered) -> TriedCure:
    return _race_of(found, "The float model", "`precision` fp32", model=str(found.complaint.reference))


def _cold(found: Gathered) -> Shown | None:
    if not _slow(found) or found.run is None or found.run.create_s < _LONG_LOAD_S:
        return None
    return Shown((f"opening the session took {found.run.create_s:.1f} s",), (), {"load": f"{found.run.create_s:.1f} s"})


def _ahead(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    made = optimized(found.complaint.model, OptimizeParams(PRESETS["portable"]), lab.store)
    if made is not None:
        changed = replace(found.complaint, model=made)
        yield _by_turns(found, "Do the constant work ahead", "`wright optimize --passes portable`", changed, _LOAD)


def _load_seconds(complaint: Complaint) -> float | None:
    outcome = attempt(complaint)
    return None if isinstance(outcome, Refused) else outcome.create_s


def _by_turns(found: Gathered, title: str, how: str, changed: Complaint, gauge: Gauge) -> TriedCure:
    """Sessions of both in turn; only all of one side clearly above all of the other is told."""
    clearly, words = gauge.clearly, gauge.words
    sides: tuple[list[float], list[float]] = ([], [])
    for _ in range(_TIMES):
        for side, complaint in zip(sides, (found.complaint, changed), strict=True):
            value = gauge.read(complaint)
            if value is None:
                return TriedCure(title, how, "as it is", "it could not be measured", None)
            side.append(value)
    before, after = sides
    held = True if min(before) > clearly * max(after) else False if max(before) <= clearly * min(after) else None
    spans = [f"{words(min(side))} to {words(max(side))} ({len(side)} sessions)" for side in sides]
    return TriedCure(title, how, spans[0], spans[1], held, measure.QUIETER if held is None else None)


def _packed(found: Gathered) -> Shown | None:
    if found.complaint.symptom != "memory" or not found.runs or found.model is None:
        return None
    if found.complaint.session.config.get(_PREPACKING) == "1":
        return None
    size = found.model.total_bytes
    return Shown((f"the model is {size / 2**20:,.0f} MiB",), (), {"size": f"{size / 2**20:,.0f} MiB"})


def _unpacked(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    config = {**found.complaint.session.config, _PREPACKING: "1"}
    changed = replace(found.complaint, session=replace(found.complaint.session, config=config))
    yield _by_turns(found, "Keep one copy of the weights", f"config.{_PREPACKING}=1", changed, _PEAK)


def _arena(found: Gathered) -> Shown | None:
    on = found.complaint.session.config.get(_ARENA) != "0"
    if found.complaint.symptom != "memory" or not found.runs or not on or found.complaint.target.ep != "cpu":
        return None
    return Shown(("onnxruntime's arena grows to the next power of two, and keeps what it has",))


def _without_arena(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    config = {**found.complaint.session.config, _ARENA: "0"}
    changed = replace(found.complaint, session=replace(found.complaint.session, config=config))
    yield _by_turns(found, "Give memory back after each tensor", f"config.{_ARENA}=0", changed, _PEAK)


def _peak_bytes(complaint: Complaint) -> float | None:
    found = perf_of(complaint, iterations=3)
    return None if found is None else found.peak_rss_bytes


_AVERAGE = Gauge(_average_ms, _CLEARLY, lambda value: f"{value:.3g} ms a run")
_LOAD = Gauge(_load_seconds, _CLEARLY, lambda value: f"{value:.2f} s")
_PEAK = Gauge(_peak_bytes, _LESS, lambda value: f"{value / 2**20:,.0f} MiB")


def perf_of(complaint: Complaint, iterations: int) -> PerfResult | None:
    session = complaint.session
    options = PerfOptions(
        iterations=iterations,
        warmup=1,
        threads=session.threads,
        provider_options=session.provider_options,
        level=session.level,
        config=session.config,
        inputs=complaint.inputs,
    )
    try:
        return measure.perf(Path(complaint.model), complaint.target, options)
    except WrightError:
        return None


RULES = (
    CauseRule(
        "too-many-threads",
        "slow",
        "{threads} threads share {cpus}, and wait for each other",
        _threads,
        _fewer_threads,
        cites=("docs/perf.md",),
        proven=True,
    ),
    CauseRule(
        "optimizations-off",
        "slow",
        "onnxruntime's graph optimizations are at {level}",
        _level,
        _optimizing,
        proven=True,
    ),
    CauseRule(
        "denormal-weights",
        "slow",
        "{weights} hold numbers so small that the CPU computes them in software",
        _denormal,
        _flushed,
        cites=("https://onnxruntime.ai/docs/performance/tune-performance/threading.html",),
        proven=True,
    ),
    CauseRule(
        "half-on-cpu",
        "slow",
        "float16 is computed as float32 on this CPU, with casts around the operators",
        _half,
        _float_instead,
        proven=True,
    ),
    CauseRule(
        "slower-than-float",
        "slow",
        "quantized it is slower than in float: {ops}",
        _quantized,
        _paying,
        cites=("docs/perf.md",),
    ),
    CauseRule(
        "cold-start",
        "slow",
        "opening the session takes {load}: constant work is done at every start",
        _cold,
        _ahead,
        proven=True,
    ),
    CauseRule(
        "packed-weights",
        "memory",
        "onnxruntime keeps a packed copy of the weights beside those of the model ({size})",
        _packed,
        _unpacked,
        proven=True,
    ),
    CauseRule(
        "memory-arena",
        "memory",
        "onnxruntime's arena holds more than the tensors take",
        _arena,
        _without_arena,
        cites=("https://onnxruntime.ai/docs/performance/tune-performance/memory.html",),
        proven=True,
    ),
)
