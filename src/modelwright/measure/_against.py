"""A measurement of now beside one of an earlier time: what differs, and what can be said.

Two runs at two times are two states of a machine: its clock, its temperature, its neighbours. However large the
difference, nothing here is proven; only arms that take turns within one run are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from statistics import median

from modelwright.errors import UsageError
from modelwright.evidence import SHOWN, Environment, Record
from modelwright.measure._against_types import Against, Changed, TypicalTime
from modelwright.measure._perf_types import PerfResult
from modelwright.measure.races._types import CompareResult
from modelwright.models import FileDigest

Measured = PerfResult | CompareResult
_FILES = "the model files"


def against(now: CompareResult, then: Record[Measured]) -> Against:
    """Put a comparison beside a record of `perf` or `compare`."""
    facts = list(_facts(then.payload, now))
    changed = tuple(Changed(what, before, after) for what, before, after in facts if before != after)
    before, after = _times(then.payload), _times(now)
    return Against(
        record=then.id,
        then_at=then.made_at,
        then=before,
        now=after,
        same=tuple(what for what, old, new in facts if old == new),
        changed=changed,
        says=tuple(_says(before, after, changed)),
        next=_next(before, after),
    )


def require_times(then: Record[Measured]) -> None:
    if then.kind not in (PerfResult.kind, CompareResult.kind):
        raise UsageError(
            f"the record {then.id[:SHOWN]} is the answer of '{then.kind}'",
            cause="times are held against times",
            fix="give a record of perf or compare",
        )


def _times(found: Measured) -> tuple[TypicalTime, ...]:
    if isinstance(found, PerfResult):
        medians = [session.p50_ms for session in found.sessions if session.p50_ms is not None]
        return _time(found.model, found.files, medians if found.timing_valid is not False else [])
    times: dict[tuple[FileDigest, ...], tuple[TypicalTime, ...]] = {}
    for arm in found.arms:
        base = arm.name == found.base
        legs = [unit.base_ms if base else unit.arm_ms for unit in found.units if base or unit.arm == arm.name]
        medians = [median(chain.from_iterable(leg)) for leg in legs]
        times.setdefault(arm.files, _time(arm.model, arm.files, medians))
    return tuple(time for found_times in times.values() for time in found_times)


def _time(model: str, files: tuple[FileDigest, ...], medians: Sequence[float]) -> tuple[TypicalTime, ...]:
    if not medians:
        return ()
    low, high = (min(medians), max(medians)) if len(medians) > 1 else (None, None)
    return (TypicalTime(model, files, median(medians), low, high, len(medians)),)


def _facts(then: Measured, now: Measured) -> Iterator[tuple[str, str, str]]:
    """(what, then, now) of everything that a time depends on."""
    for what, read in _MEASURED.items():
        yield what, read(then), read(now)
    before, after = then.environment, now.environment
    for what, tell in _CIRCUMSTANCES.items():
        yield what, tell(before), tell(after)
    for name in sorted({*before.packages, *after.packages}):
        yield name, before.packages.get(name, "not installed"), after.packages.get(name, "not installed")


def _contents(found: Measured) -> str:
    models = [found.files] if isinstance(found, PerfResult) else [arm.files for arm in found.arms]
    return ", ".join(dict.fromkeys(file.sha256[:SHOWN] for files in models for file in files))


def _inputs(found: Measured) -> str:
    return ", ".join(f"{one.name} {one.dtype}{list(one.shape)}" for one in found.inputs)


def _bound(found: Measured) -> str:
    sessions = found.sessions if isinstance(found, PerfResult) else found.arms
    facts = [one.facts for one in sessions if one.facts is not None]
    return "; ".join(
        dict.fromkeys(f"{one.target}: {one.engine} on {one.hardware}, {one.threads} threads" for one in facts)
    )


def _load(environment: Environment) -> str:
    """In steps: no two moments are alike to the last digit."""
    value = environment.foreign_load.value
    if not isinstance(value, float):
        return "unknown"
    return "none" if value < 0.1 else f"about {max(0.5, round(2 * value) / 2):g} CPUs"


_MEASURED: Mapping[str, Callable[[Measured], str]] = {
    "the protocol": lambda found: found.protocol,
    _FILES: _contents,
    "the inputs": _inputs,
    "what was bound": _bound,
}
_CIRCUMSTANCES: Mapping[str, Callable[[Environment], str]] = {
    "the machine": lambda one: one.machine or "unknown",
    "modelwright": lambda one: one.modelwright,
    "the system": lambda one: one.host.system,
    "the CPU": lambda one: str(one.host.cpu.model),
    "usable CPUs": lambda one: f"{one.host.cpu.usable:g}",
    "the governor": lambda one: str(one.governor.value),
    "the power supply": lambda one: str(one.power.value),
    "other load": _load,
}


def _says(before: Sequence[TypicalTime], after: Sequence[TypicalTime], changed: Sequence[Changed]) -> Iterator[str]:
    yield "two runs at two times: the machine may have been in another state, so nothing about speed is proven"
    for now in after:
        then = next((one for one in before if one.files == now.files), None)
        if then is not None:
            rest = "".join(f", or of {one.what}" for one in changed if one.what != _FILES)
            ratio = now.p50_ms / then.p50_ms - 1
            yield f"{Path(now.model).name} is the same file: {ratio:+.1%} of its time is the effect of the moment{rest}"
    if not before or not after:
        yield "one of them has no times that count: a simulator ran, or nothing was measured"


def _next(before: Sequence[TypicalTime], after: Sequence[TypicalTime]) -> str:
    older = [one.model for one in before if one.files not in [now.files for now in after]]
    if older and after:
        return f"`wright compare {older[0]} {after[0].model}` measures both in turns, now"
    return "keep the model of then, and let `wright compare THEN NOW` measure both in turns"
