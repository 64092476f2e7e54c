"""What makes a number less trustworthy than it looks: the diagnosis, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from modelwright.evidence import busy_words
from modelwright.measure._perf_types import PerfResult
from modelwright.measure.timing._stats import drift

_FEW = 100
_DRIFT = 0.05
_SPREAD = 0.10
_APART = 0.05


def warnings_about(result: PerfResult) -> PerfResult:
    """The result with its warnings."""
    return replace(result, warnings=tuple(_warnings(result)))


def _warnings(result: PerfResult) -> Iterator[str]:
    if result.timing_valid is False:
        yield f"timing_valid is false: {result.latency_reason}"
        return
    yield from _about_samples(result)
    yield from _about_machine(result)
    yield from _about_session(result)


def _about_samples(result: PerfResult) -> Iterator[str]:
    found = result.latency
    if found is not None and found.count < _FEW:
        yield f"p99 of {found.count} samples is little more than the maximum: measure {_FEW} or more"
    if any(record.steady is False for record in result.sessions):
        cap = result.plan.warmup_cap_s
        yield f"still getting faster after {cap:g} s of warm-up: ask for a number of warm-up runs"
    if found is not None and found.spread > _SPREAD:
        yield f"samples spread by {found.spread:.0%}: something else shares the machine, or its clock changes"
    worst = max((drift(record.samples_ns) or 0.0 for record in result.sessions), key=abs, default=0.0)
    if abs(worst) > _DRIFT:
        direction = "slower" if worst > 0 else "faster"
        yield f"it got {abs(worst):.0%} {direction} while it was measured: heat, clock or other work"
    medians = [record.p50_ms for record in result.sessions if record.p50_ms]
    if medians and max(medians) > min(medians) * (1 + _APART):
        apart = max(medians) / min(medians) - 1
        yield f"medians of fresh sessions differ by {apart:.0%}: to compare two models use wright compare"


def _about_machine(result: PerfResult) -> Iterator[str]:
    environment = result.environment
    busy = busy_words(environment.foreign_load.value, environment.host.cpu.usable)
    if busy is not None:
        yield busy
    if environment.governor.value not in (None, "performance"):
        yield f"the CPU governor is {environment.governor.value}: set it to performance for steady clocks"
    if environment.power.value == "battery":
        yield "the machine runs on battery: plug it in"


def _about_session(result: PerfResult) -> Iterator[str]:
    bound = result.bound
    if bound is None:
        return
    if bound.threads > result.environment.host.cpu.usable:
        yield f"{bound.threads} threads share {result.environment.host.cpu.usable:g} usable CPUs"
    if bound.placed_share is not None and bound.placed_share < 1:
        elsewhere = ", ".join(f"{count} on {ep}" for ep, count in bound.nodes_per_ep.items() if ep != bound.ep)
        yield f"not all nodes run on {bound.ep}: {elsewhere}; wright analyze tells why"
