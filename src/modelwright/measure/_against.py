"""A measurement of now beside one of an earlier time: what differs, and what can be said.

Two runs at two times are two states of a machine: its clock, its temperature, its neighbours. However large the
difference, nothing here is proven; only arms that take turns within one run are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from modelwright.evidence import SHOWN, Environment, Record, RecordHead
from modelwright.measure._perf_types import PerfResult
from modelwright.measure.races._types import CompareResult
from modelwright.models import FileDigest
from modelwright.vocabulary import Result

_NS_PER_MS = 1e6


@dataclass(frozen=True)
class TypicalTime:
    """The typical run of one model: the median over sessions, and the lowest and highest of them.

    One session alone has no range: how the next one would run is not known.
    """

    model: str
    files: tuple[FileDigest, ...]
    p50_ms: float
    low_ms: float | None
    high_ms: float | None
    sessions: int


@dataclass(frozen=True)
class Changed:
    """Something that differs between then and now."""

    what: str
    then: str
    now: str


@dataclass(frozen=True)
class Against(Result):
    """`same` are what both times share, `changed` what they do not. `proven` is always false, and `next` says what
    would prove something."""

    kind: ClassVar[str] = "against"

    then_id: str
    then_at: str
    now_id: str
    now_at: str
    then: tuple[TypicalTime, ...]
    now: tuple[TypicalTime, ...]
    same: tuple[str, ...]
    changed: tuple[Changed, ...]
    says: tuple[str, ...]
    next: str
    proven: bool = False


def against(now: Record[Any], then: Record[Any]) -> Against:
    """Put two records of `perf` or `compare` beside each other."""
    facts = list(_facts(then, now))
    changed = tuple(Changed(what, before, after) for what, before, after in facts if before != after)
    times = _times(then.payload), _times(now.payload)
    return Against(
        then_id=then.id,
        then_at=then.made_at,
        now_id=now.id,
        now_at=now.made_at,
        then=times[0],
        now=times[1],
        same=tuple(what for what, before, after in facts if before == after),
        changed=changed,
        says=tuple(_says(times, changed)),
        next=_next(then, now),
    )


def _times(found: PerfResult | CompareResult) -> tuple[TypicalTime, ...]:
    if isinstance(found, PerfResult):
        medians = [session.p50_ms for session in found.sessions if session.p50_ms is not None]
        return _time(found.model, found.files, medians if found.timing_valid is not False else [])
    times: tuple[TypicalTime, ...] = ()
    for arm in found.arms:
        base = arm.name == found.base
        legs = [unit.base_ms if base else unit.arm_ms for unit in found.units if base or unit.arm == arm.name]
        times += _time(arm.model, arm.files, [median(chain.from_iterable(leg)) for leg in legs])
    return times


def _time(model: str, files: tuple[FileDigest, ...], medians: Sequence[float]) -> tuple[TypicalTime, ...]:
    if not medians:
        return ()
    several = len(medians) > 1
    low, high = (min(medians), max(medians)) if several else (None, None)
    return (TypicalTime(model, files, median(medians), low, high, len(medians)),)


def _facts(then: Record[Any], now: Record[Any]) -> Iterator[tuple[str, str, str]]:
    """(what, then, now) of everything that a time depends on."""
    before, after = then.environment, now.environment
    yield "the protocol", then.protocol, now.protocol
    yield "the machine", before.machine or "unknown then", after.machine or "unknown now"
    for what, read in _CIRCUMSTANCES.items():
        yield what, read(before), read(after)
    for name in sorted({*before.packages, *after.packages}):
        yield name, before.packages.get(name, "not installed"), after.packages.get(name, "not installed")
    yield "the targets", ", ".join(then.targets), ", ".join(now.targets)
    yield "the model files", _contents(then), _contents(now)
    yield "the inputs", _inputs(then.payload), _inputs(now.payload)
    yield "what was bound", _bound(then.payload), _bound(now.payload)


_CIRCUMSTANCES: dict[str, Any] = {
    "modelwright": lambda one: one.modelwright,
    "the system": lambda one: one.host.system,
    "the CPU": lambda one: str(one.host.cpu.model),
    "usable CPUs": lambda one: f"{one.host.cpu.usable:g}",
    "the governor": lambda one: str(one.governor.value),
    "the power supply": lambda one: str(one.power.value),
    "other load": lambda one: _load(one),
}


def _load(environment: Environment) -> str:
    """In steps: no two moments are alike to the last digit."""
    value = environment.foreign_load.value
    return "unknown" if not isinstance(value, float) else "none" if value < 0.1 else f"about {value:.1f} CPUs"


def _contents(head: RecordHead) -> str:
    return ", ".join(file.sha256[:SHOWN] for model in head.models for file in model.files)


def _inputs(found: PerfResult | CompareResult) -> str:
    return ", ".join(f"{one.name} {one.dtype}{list(one.shape)}" for one in found.inputs)


def _bound(found: PerfResult | CompareResult) -> str:
    sessions = found.sessions if isinstance(found, PerfResult) else found.arms
    facts = [one.facts for one in sessions if one.facts is not None]
    return "; ".join(dict.fromkeys(f"{one.engine} on {one.hardware}, {one.threads} threads" for one in facts))


def _says(times: tuple[tuple[TypicalTime, ...], tuple[TypicalTime, ...]], changed: Sequence[Changed]) -> Iterator[str]:
    yield "two runs at two times: the machine may have been in another state, so nothing about speed is proven"
    for after in times[1]:
        before = next((one for one in times[0] if one.files == after.files), None)
        if before is not None:
            ratio = after.p50_ms / before.p50_ms - 1
            rest = "the moment" if not changed else f"the moment, or of {', '.join(one.what for one in changed)}"
            yield f"{Path(after.model).name} is the same file: {ratio:+.1%} is the effect of {rest}"
    if not times[0] or not times[1]:
        yield "one of them has no times that count: a simulator ran, or nothing was measured"


def _next(then: Record[Any], now: Record[Any]) -> str:
    files = [model.name for head in (then, now) for model in head.models]
    names = list(dict.fromkeys(files))
    if len(names) > 1 and _contents(then) != _contents(now):
        return f"wright compare {' '.join(names)} measures them in turns, now"
    return "keep the earlier model, and let `wright compare OLD NEW` measure both in turns, now"
