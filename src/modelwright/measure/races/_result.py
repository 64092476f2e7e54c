"""From units and fates to the answer of `compare`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Literal

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.evidence import Environment
from modelwright.judge import Finding, Forecast, Judge, Race, Verdict, VerdictKind, finding, forecast
from modelwright.measure.races._arm import ReadyArm, inputs_digest
from modelwright.measure.races._outputs import OutputCheck
from modelwright.measure.races._sentence import quantile_name, sentence
from modelwright.measure.races._types import COMPARE_PROTOCOL, ArmResult, CompareOptions, CompareResult
from modelwright.measure.races._unit import UnitRecord
from modelwright.measure.timing._subject import InputFact
from modelwright.targets import SessionFacts

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")


@dataclass
class ArmState:
    """What became of one arm outside the timing."""

    facts: SessionFacts | None = None
    outputs: OutputCheck | None = None
    duplicate_of: str | None = None
    refused: str | None = None
    failure: str | None = None

    @property
    def runs(self) -> bool:
        return self.duplicate_of is None and self.refused is None and self.failure is None


@dataclass(frozen=True)
class Outlook:
    """What the rest of the budget buys: `rivals` arms share it, a quarter goes to sentinels."""

    unit_s: float
    left_s: float
    rivals: int
    begun_s: float

    def forecast(self, verdict: Verdict) -> Forecast:
        """What the whole budget could resolve, at the noise seen."""
        assert verdict.noise is not None
        more = int(self.left_s / self.unit_s * 3 / 4 / self.rivals)
        return forecast(verdict.noise, verdict.min_effect, verdict.units + more, alpha=verdict.alpha)

    def settled_after(self, found: Forecast) -> float:
        """The budget that settles this arm, with all others that need units running beside it."""
        return self.begun_s + found.units_to_equate * self.rivals * self.unit_s * 4 / 3


@dataclass(frozen=True)
class Reached:
    """How far the comparison came."""

    status: Literal["complete", "interrupted", "failed"]
    total_s: float
    seeds: tuple[int, ...]
    outlook: Outlook | None
    fresh_processes: bool
    environment: Environment


def compare_result(
    arms: tuple[ReadyArm, ...],
    as_written: tuple[str, ...],
    options: CompareOptions,
    states: Mapping[str, ArmState],
    race: Race | None,
    units: Sequence[UnitRecord],
    progress: Reached,
) -> CompareResult:
    sentinels = [unit for unit in units if unit.arm is None]
    control = Judge(options.min_effect, options.alpha, quantile=options.by[0])
    for unit in sentinels:
        control.add(*unit.slots_ms)
    judged = _Judged(arms[0], options, race, units, progress)
    results = tuple(judged.arm(arm, states[arm.name]) for arm in arms)
    return CompareResult(
        status=progress.status,
        protocol=COMPARE_PROTOCOL,
        base=arms[0].name,
        arms=results,
        options=options,
        arms_as_written=as_written,
        inputs=tuple(InputFact(name, array.dtype.name, array.shape) for name, array in arms[0].feeds.items()),
        inputs_digest=inputs_digest(arms[0]),
        seeds=progress.seeds,
        total_s=progress.total_s,
        unit_s=progress.outlook.unit_s if progress.outlook else None,
        fresh_processes=progress.fresh_processes,
        sentinel_units=len(sentinels),
        sentinel_noise=control.verdict().noise,
        environment=progress.environment,
        warnings=tuple(_contradictions(results, options.by)),
        units=tuple(units),
    )


@dataclass(frozen=True)
class _Judged:
    base: ReadyArm
    options: CompareOptions
    race: Race | None
    units: Sequence[UnitRecord]
    progress: Reached

    def arm(self, arm: ReadyArm, state: ArmState) -> ArmResult:
        found = None if arm is self.base else self._finding(arm, state)
        outlook = self._forecast(found) if found and state.runs else None
        different = state.outputs.different if state.outputs and state.runs else None
        words = sentence(arm.name, self.base.name, found, self.progress.total_s, different) if found else None
        return ArmResult(
            name=arm.name,
            model=str(arm.path),
            fingerprint=arm.fingerprint,
            identity=arm.identity,
            files=arm.files,
            precision=arm.precision,
            target=str(arm.target),
            runtime=arm.runtime.name if arm.runtime else None,
            facts=state.facts,
            times_ms=tuple(self._time(arm, quantile) for quantile in self.options.by),
            verdict=found,
            sentence=words or f"{arm.name} is the base",
            within=self._within(arm, state),
            outputs=state.outputs,
            forecast=outlook,
            settled_after_s=self.progress.outlook.settled_after(outlook) if outlook and self.progress.outlook else None,
            refused=state.refused,
            failure=state.failure,
        )

    def _finding(self, arm: ReadyArm, state: ArmState) -> Finding:
        found = self.race.findings().get(arm.name) if self.race else None
        blank = found or finding(
            tuple(Judge(self.options.min_effect, self.options.alpha, quantile=q).verdict() for q in self.options.by)
        )
        if state.duplicate_of is not None:
            return _all(blank, VerdictKind.DUPLICATE, state.duplicate_of)
        if state.refused is not None:
            untold = state.outputs is not None and state.outputs.nothing
            words = "nobody can tell whether its answers differ" if untold else "its answers differ"
            return _all(blank, VerdictKind.INVALID, f"{words}: {state.refused}")
        if state.failure is not None:
            return _all(blank, VerdictKind.INVALID, state.failure)
        return blank

    def _within(self, arm: ReadyArm, state: ArmState) -> bool | None:
        if self.options.max_slowdown is None or arm is self.base:
            return None
        if state.duplicate_of is not None:
            return True
        return self.race.within(arm.name) if self.race and state.runs else None

    def _forecast(self, found: Finding) -> Forecast | None:
        first = found.by[0]
        if found.proven or first.noise is None or self.progress.outlook is None:
            return None
        return self.progress.outlook.forecast(first)

    def _time(self, arm: ReadyArm, quantile: float) -> float | None:
        if arm is self.base:
            legs = [unit.base_ms for unit in self.units]
        else:
            legs = [unit.arm_ms for unit in self.units if unit.arm == arm.name]
        return median(float(np.quantile(np.concatenate(leg), quantile)) for leg in legs) if legs else None


def _all(found: Finding, kind: VerdictKind, reason: str) -> Finding:
    """One reason that no time could change."""
    verdicts = (replace(one, kind=kind, effect=None, low=None, high=None, reason=reason) for one in found.by)
    return Finding(kind, tuple(verdicts))


def _contradictions(results: Sequence[ArmResult], by: Sequence[float]) -> Iterator[str]:
    """Times shown beside a proof that they contradict: they were not taken at the same moments, the pairs were."""
    base = results[0]
    for arm in results[1:]:
        for place, verdict in enumerate(arm.verdict.by if arm.verdict else ()):
            ours, theirs = arm.times_ms[place], base.times_ms[place]
            if ours is None or theirs is None or not verdict.decided or verdict.low is None or verdict.high is None:
                continue
            shown = theirs / ours - 1
            if not verdict.low - verdict.min_effect < shown < verdict.high + verdict.min_effect:
                name = quantile_name(by[place])
                yield (
                    f"the {name} shown say {shown:+.1%} for {arm.name}, pairs of one moment {verdict.effect:+.1%}: "
                    "the machine changed its speed meanwhile, and the pairs are right"
                )
