"""Which of several arms is faster than the first, proven."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from modelwright.errors import UsageError, WrightError
from modelwright.judge import Forecast, Judge, Race, Verdict, VerdictKind, forecast, resolvable_effect
from modelwright.measure._arm import Arm, make_arms
from modelwright.measure._arm_spec import parse_arms
from modelwright.measure._compare_types import (
    COMPARE_PROTOCOL,
    ArmResult,
    CompareOptions,
    CompareResult,
    ComparisonFailed,
    ComparisonInterrupted,
    OutputCheck,
)
from modelwright.measure._environment import EnvironmentProbe
from modelwright.measure._lock import measurement_lock
from modelwright.measure._outputs import check_outputs
from modelwright.measure._schedule import Schedule
from modelwright.measure._sentence import sentence
from modelwright.measure._unit import ArmFailed, Bench, UnitRecord
from modelwright.targets import SessionFacts

if TYPE_CHECKING:
    from numpy.typing import NDArray

Note = Callable[[str], None]
_UNRELATED = 0.9
_NOISES = (0.01, 0.03, 0.05)


def compare(
    arms: Sequence[str], options: CompareOptions | None = None, *, note: Note = lambda text: None
) -> CompareResult:
    """Compare arms (written as `NAME=MODEL@key=value,…`) with the first one, until decided or out of budget.

    Raises ComparisonFailed or ComparisonInterrupted, with what was measured, when it ends early.
    """
    options = options or CompareOptions()
    options.check()
    Judge(options.min_effect, options.alpha)  # refuses impossible levels before anything runs
    resolved = make_arms(parse_arms(arms), options.inputs, options.target, options.threads)
    comparison = _Comparison(resolved, options, note)
    with measurement_lock("wright compare", wait=options.wait, note=note):
        return comparison.run()


@dataclass
class _Fate:
    """What became of one arm outside the timing."""

    facts: SessionFacts | None = None
    outputs: OutputCheck | None = None
    duplicate_of: str | None = None
    failure: str | None = None


@dataclass
class _Comparison:
    arms: tuple[Arm, ...]
    options: CompareOptions
    note: Note
    units: list[UnitRecord] = field(default_factory=list)
    race: Race | None = None

    def __post_init__(self) -> None:
        self.base = self.arms[0]
        self.fates = {arm.name: _Fate() for arm in self.arms}
        runtimes = {arm.runtime.name if arm.runtime else None for arm in self.arms}
        self.bench = Bench(self.options.unit, fresh_processes=len(runtimes) > 1)
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
                self.fates[arm.name].duplicate_of = first

    def _try_all(self) -> None:
        """Open every arm once: a simulated one is refused, a broken one is out before anything is timed."""
        if not self._measurable():
            return
        expected = self._try(self.base)
        assert expected is not None
        for arm in self._measurable():
            answers = self._try(arm)
            fate = self.fates[arm.name]
            if answers is None:
                continue
            fate.outputs = check_outputs(expected, answers)
            if fate.outputs.problem is not None:
                fate.failure = f"its answers are wrong: {fate.outputs.problem}"

    def _try(self, arm: Arm) -> Mapping[str, NDArray[Any]] | None:
        # Base and arms in different slots, so that both processes are up when the first unit begins.
        fate, seat = self.fates[arm.name], self.bench.seat(arm, 0 if arm is self.base else 1)
        self.note(f"opening {arm.name}")
        try:
            fate.facts = seat.open(arm.path, arm.target, arm.spec, arm.feeds).facts
            _refuse_simulated(arm, fate.facts)
            answers = seat.outputs()
            seat.leave()
        except UsageError:
            raise
        except WrightError as error:
            if arm is self.base:
                raise
            fate.failure = str(error)
            seat.renew()
            return None
        return answers

    def _measurable(self) -> list[Arm]:
        out = {name for name, fate in self.fates.items() if fate.duplicate_of or fate.failure}
        return [arm for arm in self.arms[1:] if arm.name not in out]

    def _measure(self) -> None:
        runners = {arm.name: arm for arm in self._measurable()}
        if not runners:
            return
        self.race = Race(runners, self.options.alpha, min_effect=self.options.min_effect)
        schedule = Schedule(self.options.seed)
        while alive := [name for name in self.race.alive if not self.fates[name].failure]:
            if self.units and self._spent() + self._unit_s() > self.options.budget_s:
                break
            turn = schedule.next(alive)
            arm = self.base if turn.arm is None else runners[turn.arm]
            try:
                unit = self.bench.unit(len(self.units) + 1, self.base, arm, base_first=turn.base_first)
            except ArmFailed as failed:
                if failed.arm is self.base:
                    raise
                self.fates[failed.arm.name].failure = str(failed.error)
                continue
            self._judge(unit)
        if len(self.units) == 1:
            self.note(self._plan_words())

    def _judge(self, unit: UnitRecord) -> None:
        assert self.race is not None
        self.units.append(unit)
        if len(self.units) == 2:
            self.note(self._plan_words())
        if unit.arm is None:
            self.race.add_sentinel(unit.base_ms, unit.arm_ms)
            return
        verdict = self.race.add(unit.arm, base=unit.base_ms, arm=unit.arm_ms)
        self.note(f"unit {len(self.units)}, {self._spent():.0f} s: {unit.arm}: {verdict.reason}")
        if verdict.units == self.race.min_units and not verdict.decided and verdict.noise is not None:
            self.note(self._forecast_words(verdict))

    def _plan_words(self) -> str:
        fits = len(self.units) + max(0, int((self.options.budget_s - self._spent()) / self._unit_s()))
        each = fits * 3 // 4 // max(1, len(self._measurable()))
        alpha = self.options.alpha / max(1, len(self._measurable()))
        resolves = [(noise, resolvable_effect(noise, each, alpha=alpha)) for noise in _NOISES]
        told = ", ".join(f"{effect:.1%} at {noise:.0%} noise" for noise, effect in resolves if effect is not None)
        units = f"{each} unit{'s' if each != 1 else ''}"
        words = f"a unit takes {self._unit_s():.1f} s: {self.options.budget_s:g} s buy about {units} per arm"
        return f"{words}, which resolve {told}" if told else f"{words}, too few for any verdict: raise --budget"

    def _forecast_words(self, verdict: Verdict) -> str:
        found = self._forecast(verdict)
        assert found is not None
        return (
            f"noise is {found.noise:.1%} per unit: about {found.units_to_find} units find {found.min_effect:.1%}, "
            f"{found.units_to_equate} prove there is no more; {found.reason}"
        )

    def _forecast(self, verdict: Verdict) -> Forecast | None:
        """What the whole budget could resolve for this arm, at the noise seen."""
        if verdict.noise is None:
            return None
        left = max(0.0, self.options.budget_s - self._spent())
        more = int(left / self._unit_s() * 3 / 4 / max(1, len(self.race.alive) if self.race else 1))
        return forecast(verdict.noise, self.options.min_effect, verdict.units + more, alpha=verdict.alpha)

    def _settled_after(self, outlook: Forecast) -> float:
        """The budget that settles this arm, with all others that need units running beside it."""
        rivals = max(1, len(self.race.alive) if self.race else 1)
        begun = self._spent() - sum(unit.total_s for unit in self.units)
        return begun + outlook.units_to_equate * rivals * self._unit_s() * 4 / 3

    def _spent(self) -> float:
        return time.monotonic() - self.started

    def _unit_s(self) -> float:
        """Seconds a unit takes; the first one, which starts processes, only counts while it is alone."""
        recent = self.units[1:] or self.units
        return sum(unit.total_s for unit in recent) / len(recent)

    def _result(self, status: Any, probe: EnvironmentProbe) -> CompareResult:
        spent = self._spent()
        sentinels = [unit for unit in self.units if unit.arm is None]
        control = Judge(self.options.min_effect, self.options.alpha)
        for unit in sentinels:
            control.add(unit.base_ms, unit.arm_ms)
        return CompareResult(
            status=status,
            protocol=COMPARE_PROTOCOL,
            base=self.base.name,
            arms=tuple(self._arm_result(arm, spent) for arm in self.arms),
            min_effect=self.options.min_effect,
            alpha=self.options.alpha,
            seed=self.options.seed,
            budget_s=self.options.budget_s,
            total_s=spent,
            unit_s=self._unit_s() if self.units else None,
            unit_plan=self.options.unit,
            fresh_processes=self.bench.fresh_processes,
            sentinel_units=len(sentinels),
            sentinel_noise=control.verdict().noise,
            environment=probe.finish(self.bench.cpu_s),
            warnings=tuple(self._warnings()),
            units=tuple(self.units),
        )

    def _arm_result(self, arm: Arm, spent: float) -> ArmResult:
        fate = self.fates[arm.name]
        verdict = None if arm is self.base else self._verdict(arm, fate)
        open_question = verdict is not None and not verdict.decided and fate.failure is None
        outlook = self._forecast(verdict) if verdict and open_question and self.units else None
        return ArmResult(
            name=arm.name,
            model=str(arm.path),
            fingerprint=arm.fingerprint,
            precision=arm.precision,
            target=str(arm.target),
            runtime=arm.runtime.name if arm.runtime else None,
            facts=fate.facts,
            p50_ms=self._p50(arm),
            verdict=verdict,
            sentence=sentence(arm.name, self.base.name, verdict, spent) if verdict else f"{arm.name} is the base",
            outputs=fate.outputs,
            forecast=outlook,
            settled_after_s=self._settled_after(outlook) if outlook else None,
            failure=fate.failure,
        )

    def _verdict(self, arm: Arm, fate: _Fate) -> Verdict:
        found = self.race.verdicts().get(arm.name) if self.race else None
        blank = found or Judge(self.options.min_effect, self.options.alpha).verdict()
        if fate.duplicate_of is not None:
            return replace(blank, kind=VerdictKind.DUPLICATE, reason=fate.duplicate_of)
        if fate.failure is not None:
            return replace(blank, kind=VerdictKind.INVALID, effect=None, low=None, high=None, reason=fate.failure)
        return blank

    def _warnings(self) -> Iterator[str]:
        for name, fate in self.fates.items():
            cosine = fate.outputs.cosine if fate.outputs else None
            if cosine is not None and cosine < _UNRELATED:
                yield f"{name} answers something else than {self.base.name} (cosine {cosine:.3f}): the same model?"

    def _p50(self, arm: Arm) -> float | None:
        if arm is self.base:
            medians = [median(unit.base_ms) for unit in self.units]
        else:
            medians = [median(unit.arm_ms) for unit in self.units if unit.arm == arm.name]
        return median(medians) if medians else None


def _refuse_simulated(arm: Arm, facts: SessionFacts) -> None:
    if not facts.timing_valid:
        raise UsageError(
            f"arm {arm.name} cannot take part in a comparison of speed",
            cause=f"{facts.target} is simulated on this machine: its timings say nothing about the device",
            fix="compare on a machine that has the device; wright debug compares its answers here",
        )
