"""Which of several arms is faster than the first, proven."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright.errors import UsageError, WrightError
from modelwright.evidence import EnvironmentProbe
from modelwright.judge import Finding, Judge, Race, Verdict, resolvable_effect
from modelwright.measure.races._arm import ReadyArm, make_arms
from modelwright.measure.races._arm_spec import Arm, parse_arms
from modelwright.measure.races._outputs import Outputs, check_outputs
from modelwright.measure.races._result import ArmState, Outlook, Reached, compare_result
from modelwright.measure.races._retry import Earlier, read_earlier
from modelwright.measure.races._schedule import Schedule
from modelwright.measure.races._types import (
    CompareOptions,
    CompareResult,
    ComparisonFailed,
    ComparisonInterrupted,
)
from modelwright.measure.races._unit import ArmFailed, UnitRecord, UnitRunner, long_enough, unit_plan
from modelwright.measure.timing._lock import measurement_lock
from modelwright.targets import SessionFacts
from modelwright.vocabulary import OnProgress, Progress, silent

_NOISES = (0.01, 0.03, 0.05)
Explain = Callable[[CompareResult, Sequence[ReadyArm], OnProgress], CompareResult]


def compare(
    arms: Sequence[str | Path | Arm],
    options: CompareOptions | None = None,
    *,
    explain: Explain | None = None,
    on_progress: OnProgress | None = None,
) -> CompareResult:
    """Compare arms (written as `NAME=MODEL@key=value,…`) with the first one, until decided or out of budget.
    `explain` adds to the result what it can tell about the arms, while the machine is still reserved.

    Raises ComparisonFailed or ComparisonInterrupted, with what was measured, when it ends early.
    """
    options = options or CompareOptions()
    options.check()
    for quantile in options.by:
        Judge(options.min_effect, options.alpha, quantile=quantile)  # refuses impossible levels before anything runs
    resolved = make_arms(parse_arms(arms), options.inputs, options.target, options.threads)
    options = replace(options, unit=options.unit or unit_plan(resolved))
    earlier = read_earlier(options.retry, resolved, options)
    tell = on_progress or silent
    comparison = _Comparison(resolved, tuple(map(str, arms)), options, tell, earlier)
    with measurement_lock("wright compare", wait=options.wait, on_progress=tell):
        found = comparison.run()
        return found if explain is None else _explained(explain, found, resolved, tell)


def _explained(explain: Explain, found: CompareResult, arms: tuple[ReadyArm, ...], tell: OnProgress) -> CompareResult:
    try:
        return explain(found, arms, tell)
    except KeyboardInterrupt:
        stop = ComparisonInterrupted()
        stop.partial = replace(found, status="interrupted")
        raise stop from None


@dataclass
class _Comparison:
    arms: tuple[ReadyArm, ...]
    as_written: tuple[str, ...]
    options: CompareOptions
    tell: OnProgress
    earlier: Earlier | None = None
    units: list[UnitRecord] = field(default_factory=list)
    race: Race | None = None

    def __post_init__(self) -> None:
        self.base = self.arms[0]
        self.states = {arm.name: ArmState() for arm in self.arms}
        self.seed = secrets.randbits(32) if self.options.seed is None else self.options.seed
        runtimes = {arm.runtime.name if arm.runtime else None for arm in self.arms}
        assert self.options.unit is not None
        self.bench = UnitRunner(long_enough(self.options.unit, self.options.by), fresh_processes=len(runtimes) > 1)
        self.started = time.monotonic()

    def run(self) -> CompareResult:
        self.started = time.monotonic()
        probe = EnvironmentProbe()
        try:
            self._find_duplicates()
            self._try_all()
            self._measure()
        except KeyboardInterrupt:
            if not self.units:
                raise
            stop = ComparisonInterrupted()
            stop.partial = self._result("interrupted", probe)
            raise stop from None
        except ArmFailed as failed:
            error = ComparisonFailed(f"the base {self.base.name} failed", cause=str(failed.error), fix=failed.error.fix)
            if not self.units:
                raise failed.error from None
            error.partial = self._result("failed", probe)
            raise error from None
        finally:
            self.bench.close()
        return self._result("complete", probe)

    def _find_duplicates(self) -> None:
        if self.options.measure_duplicates:
            return
        seen: dict[str, str] = {}
        for arm in self.arms:
            first = seen.setdefault(arm.identity, arm.name)
            if first != arm.name:
                self.states[arm.name].duplicate_of = first

    def _try_all(self) -> None:
        """Open every arm once: a simulated one is refused, one that is broken or answers something else is out before
        anything is timed."""
        if not self._measurable():
            return
        expected = self._try(self.base)
        assert expected is not None
        for arm in self._measurable():
            answers = self._try(arm)
            if answers is None:
                continue
            state = self.states[arm.name]
            state.outputs = check_outputs(expected, answers, self.base.tolerance, arm.tolerance)
            if not self.options.allow_different:
                state.refused = state.outputs.different

    def _try(self, arm: ReadyArm) -> Outputs | None:
        # Base and arms in different slots, so that both processes are up when the first unit begins.
        state, slot = self.states[arm.name], 0 if arm is self.base else 1
        self.note(f"opening {arm.name}")
        try:
            state.facts = self.bench.opened(arm, slot)
            _refuse_simulated(arm, state.facts)
            self._refuse_other_runtime(arm, state.facts)
            answers = self.bench.answers(arm, slot)
        except UsageError:
            raise
        except WrightError as error:
            if arm is self.base:
                raise
            state.failure = str(error)
            self.bench.process(arm, slot).renew()
            return None
        return answers

    def _refuse_other_runtime(self, arm: ReadyArm, facts: SessionFacts) -> None:
        before = self.earlier.onnxruntime(arm.name) if self.earlier else None
        if before is not None and before != facts.onnxruntime:
            raise UsageError(
                f"the earlier units of {arm.name} were measured with another onnxruntime",
                cause=f"{before} then, {facts.onnxruntime} now",
                fix="leave `retry` out",
            )

    def _measurable(self) -> list[ReadyArm]:
        return [arm for arm in self.arms[1:] if self.states[arm.name].runs]

    def _measure(self) -> None:
        runners = {arm.name: arm for arm in self._measurable()}
        if not runners:
            return
        options = self.options
        self.race = Race(
            runners,
            options.alpha,
            min_effect=options.min_effect,
            quantiles=options.by,
            max_slowdown=options.max_slowdown,
        )
        for unit in self.earlier.units if self.earlier else ():
            self._count(unit)
        schedule = Schedule(self.seed)
        while alive := [name for name in self.race.alive if self.states[name].runs]:
            if self._own_units() and self._spent() + self._unit_s() > options.budget_s:
                break
            turn = schedule.next(alive)
            arm = self.base if turn.arm is None else runners[turn.arm]
            try:
                unit = self.bench.unit(len(self.units) + 1, self.base, arm, base_first=turn.base_first)
            except ArmFailed as failed:
                if failed.arm is self.base:
                    raise
                self.states[failed.arm.name].failure = str(failed.error)
                continue
            self._judge(unit)
        if len(self._own_units()) == 1:
            self.note(self._plan_words())

    def _judge(self, unit: UnitRecord) -> None:
        found = self._count(unit)
        if len(self._own_units()) == 2:
            self.note(self._plan_words())
        if found is None:
            return
        first = found.by[0]
        self.note(f"{unit.arm}: {first.reason}", f"unit {len(self.units)}, {self._spent():.0f} s")
        assert self.race is not None
        if first.units == self.race.min_units and not found.proven and first.noise is not None:
            self.note(self._forecast_words(first))

    def _count(self, unit: UnitRecord) -> Finding | None:
        assert self.race is not None
        self.units.append(unit)
        if unit.arm is None:
            self.race.add_sentinel(*unit.slots_ms)
        elif unit.arm in self.race.arms:
            return self.race.add(unit.arm, base=unit.base_ms, arm=unit.arm_ms)
        return None

    def _plan_words(self) -> str:
        budget, arms = self.options.budget_s, max(1, len(self._measurable()))
        fits = len(self.units) + max(0, int((budget - self._spent()) / self._unit_s()))
        each = fits * 3 // 4 // arms
        alpha = self.options.alpha / (arms * len(self.options.by))
        resolves = [(noise, resolvable_effect(noise, each, alpha=alpha)) for noise in _NOISES]
        told = ", ".join(f"{effect:.1%} at {noise:.0%} noise" for noise, effect in resolves if effect is not None)
        units = f"{each} unit{'s' if each != 1 else ''}"
        words = f"a unit takes {self._unit_s():.1f} s: {budget:g} s buy about {units} per arm"
        return f"{words}, which resolve {told}" if told else f"{words}, too few for any verdict: raise `budget_s`"

    def _forecast_words(self, verdict: Verdict) -> str:
        found = self._outlook().forecast(verdict)
        return (
            f"noise is {found.noise:.1%} per unit: about {found.units_to_find} units find {found.min_effect:.1%}, "
            f"{found.units_to_equate} prove there is no more; {found.reason}"
        )

    def _outlook(self) -> Outlook:
        rivals = max(1, len(self.race.alive) if self.race else 1)
        begun = self._spent() - sum(unit.total_s for unit in self._own_units())
        return Outlook(self._unit_s(), max(0.0, self.options.budget_s - self._spent()), rivals, begun)

    def note(self, text: str, step: str | None = None) -> None:
        self.tell(Progress(text, stage=step))

    def _own_units(self) -> list[UnitRecord]:
        """Those measured in this call."""
        return self.units[len(self.earlier.units) if self.earlier else 0 :]

    def _spent(self) -> float:
        return time.monotonic() - self.started

    def _unit_s(self) -> float:
        """Seconds a unit takes; the first one, which starts processes, only counts while it is alone."""
        own = self._own_units() or self.units
        recent = own[1:] or own
        return sum(unit.total_s for unit in recent) / len(recent)

    def _result(self, status: Any, probe: EnvironmentProbe) -> CompareResult:
        reached = Reached(
            status=status,
            total_s=self._spent() + (self.earlier.total_s if self.earlier else 0.0),
            seeds=(*(self.earlier.seeds if self.earlier else ()), self.seed),
            outlook=self._outlook() if self.units else None,
            fresh_processes=self.bench.fresh_processes,
            environment=probe.finish(self.bench.cpu_s),
        )
        return compare_result(self.arms, self.as_written, self.options, self.states, self.race, self.units, reached)


def _refuse_simulated(arm: ReadyArm, facts: SessionFacts) -> None:
    if not facts.timing_valid:
        raise UsageError(
            f"arm {arm.name} cannot take part in a comparison of speed",
            cause=f"{facts.target} is simulated on this machine: its timings say nothing about the device",
            fix="compare on a machine that has the device; wright debug compares its answers here",
        )
