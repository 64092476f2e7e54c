"""One unit of a comparison: a fresh pair of sessions, warmed up alike, timed in mirrored bursts."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from statistics import fmean, median

from modelwright._dataclass import dataclass
from modelwright.errors import WrightError
from modelwright.judge import MIN_TICKS, Judge, tail_runs
from modelwright.measure.races._arm import ReadyArm
from modelwright.measure.races._outputs import Outputs
from modelwright.measure.races._schedule import blocks_per_unit, segments
from modelwright.measure.timing._session_process import SessionProcess
from modelwright.measure.timing._session_tasks import Bursts, BurstTaken, Warm
from modelwright.targets import EnergyZone, SessionFacts

Leg = list[list[float]]
_NS_PER_MS = 1e6
_NS_PER_S = 1e9
_BLOCK_BURSTS = 4
_ENERGY_S = 0.2


@dataclass(frozen=True)
class UnitPlan:
    """A burst lasts so many seconds and so many runs at least. After a switch the guard runs untimed, one run at least:
    caches are cold. Short bursts are repeated until all of a unit last `bursts_s`. The energy of `zones` is read."""

    burst_s: float = 0.01
    burst_runs: int = 3
    guard_s: float = 0.0
    bursts_s: float = 0.4
    warmup_cap_s: float = 2.0
    zones: tuple[EnergyZone, ...] = ()


SPINNING = UnitPlan(burst_s=0.05, guard_s=0.04)
"""Where threads of the other session spin on for some 35 ms after its last run."""


def unit_plan(arms: Iterable[ReadyArm], by: Sequence[float] = ()) -> UnitPlan:
    """How these arms can take turns, in bursts in which the quantiles asked for can be seen."""
    plan = UnitPlan() if all(arm.rests for arm in arms) else SPINNING
    return long_enough(plan, by)


def with_energy(plan: UnitPlan, zones: tuple[EnergyZone, ...]) -> UnitPlan:
    """Bursts in which a counter that moves a thousand times a second is read to half a percent."""
    return replace(plan, burst_s=max(plan.burst_s, _ENERGY_S), zones=zones)


def long_enough(plan: UnitPlan, by: Sequence[float]) -> UnitPlan:
    """A leg is two bursts or more."""
    runs = math.ceil(max((tail_runs(quantile) for quantile in by), default=0) / 2)
    return replace(plan, burst_runs=max(plan.burst_runs, runs))


@dataclass(frozen=True)
class UnitRecord:
    """Every sample of one unit, in ns, by burst; the bursts at one place of both legs are neighbours. `arm` None is a
    sentinel: the base against itself. Where a run is too short for the clock a sample is the mean of `batch` runs.
    `cpu` is where both sessions were kept, None where they were not; `began_at` is in seconds since 1970.
    `base_mj` and `arm_mj` are the energy of one run by burst, where it was read."""

    number: int
    arm: str | None
    base_first: bool
    blocks: int
    batch: int
    base_warmup_ns: tuple[int, ...]
    arm_warmup_ns: tuple[int, ...]
    base_ns: tuple[tuple[int, ...], ...]
    arm_ns: tuple[tuple[int, ...], ...]
    open_s: float
    total_s: float
    cpu: int | None = None
    began_at: float | None = None
    base_mj: tuple[float, ...] = ()
    arm_mj: tuple[float, ...] = ()

    @property
    def base_ms(self) -> Leg:
        return _milliseconds(self.base_ns)

    @property
    def arm_ms(self) -> Leg:
        return _milliseconds(self.arm_ns)

    @property
    def effect(self) -> float:
        """What this unit says by itself about the typical run: base / arm - 1."""
        judge = Judge()
        judge.add(base=self.base_ms, arm=self.arm_ms)
        return math.expm1(judge.log_ratios[0])

    @property
    def slots_ms(self) -> tuple[Leg, Leg]:
        """The bursts of the first slot, then those of the second, whoever had it."""
        return (self.base_ms, self.arm_ms) if self.base_first else (self.arm_ms, self.base_ms)


@dataclass(frozen=True)
class _Ready:
    """A warm session, and the tick of the clock it is timed with."""

    warm: Warm
    tick_ns: int

    @property
    def run_s(self) -> float:
        return median(self.warm.runs_ns) / _NS_PER_S

    @property
    def batch(self) -> int:
        """Runs that have to be timed together for the clock to tick often enough, also when they get twice as fast."""
        fastest = max(1, min(self.warm.runs_ns))
        return 1 if fastest >= 2 * MIN_TICKS * self.tick_ns else math.ceil(2 * MIN_TICKS * self.tick_ns / fastest)


@dataclass(frozen=True)
class _Turns:
    """How often the sessions of a unit take turns, how many runs are one sample, and on which CPU."""

    blocks: int
    batch: int
    cpu: int | None


class ArmFailed(Exception):
    """An arm broke in the middle of a unit; the unit is dropped as a whole."""

    def __init__(self, arm: ReadyArm, error: WrightError) -> None:
        super().__init__(str(error))
        self.arm = arm
        self.error = error


class UnitRunner:
    """The children units are measured in: two per interpreter, one for each slot.

    The coin puts the base into either slot, so the luck of a process (its memory layout) favours nobody. Arms of
    different interpreters cannot swap slots; then every unit gets fresh processes, and luck is drawn anew.
    """

    def __init__(self, plan: UnitPlan, *, fresh_processes: bool) -> None:
        self.fresh_processes = fresh_processes
        self._plan = plan
        self._processes: dict[tuple[str | None, int], SessionProcess] = {}

    @property
    def cpu_s(self) -> float | None:
        spent = [process.cpu_s for process in self._processes.values()]
        return None if None in spent else sum(value for value in spent if value is not None)

    def close(self) -> None:
        for process in self._processes.values():
            process.renew()

    def process(self, arm: ReadyArm, slot: int) -> SessionProcess:
        """The child in which this arm runs when it has this slot."""
        key = (arm.runtime.name if arm.runtime else None, slot)
        if key not in self._processes:
            self._processes[key] = SessionProcess(arm.runtime)
        return self._processes[key]

    def opened(self, arm: ReadyArm, slot: int) -> SessionFacts:
        """What the session of this arm is bound to; it stays open for `answers`."""
        return self.process(arm, slot).open(arm.path, arm.target, arm.spec, arm.feeds).facts

    def answers(self, arm: ReadyArm, slot: int) -> Outputs:
        """What the session that was opened gives for the arm's inputs; then it is closed."""
        process = self.process(arm, slot)
        found = process.outputs()
        process.leave()
        return found

    def peak_bytes(self, arm: ReadyArm) -> int | None:
        """What a process of its own takes to open this arm and run it once."""
        process = SessionProcess(arm.runtime)
        try:
            process.open(arm.path, arm.target, arm.spec, arm.feeds)
            process.outputs()
            return process.peak_rss_bytes
        finally:
            process.renew()

    def unit(self, number: int, base: ReadyArm, arm: ReadyArm, *, base_first: bool) -> UnitRecord:
        """Measure one unit; raises ArmFailed."""
        began_at, started = time.time(), time.monotonic()
        order = (base, arm) if base_first else (arm, base)
        try:
            ready = [self._opened(one, slot) for slot, one in enumerate(order)]
            open_s = time.monotonic() - started
            turns = self._turns(order, ready, open_s)
            bursts = self._bursts(order, turns)
            self._left(order)
        except ArmFailed:
            self.close()
            raise
        base_slot, arm_slot = (0, 1) if base_first else (1, 0)
        return UnitRecord(
            number=number,
            arm=None if arm is base else arm.name,
            base_first=base_first,
            blocks=turns.blocks,
            batch=turns.batch,
            base_warmup_ns=ready[base_slot].warm.runs_ns,
            arm_warmup_ns=ready[arm_slot].warm.runs_ns,
            base_ns=tuple(burst.runs_ns for burst in bursts[base_slot]),
            arm_ns=tuple(burst.runs_ns for burst in bursts[arm_slot]),
            open_s=open_s,
            total_s=time.monotonic() - started,
            cpu=turns.cpu,
            began_at=began_at,
            base_mj=tuple(burst.mj for burst in bursts[base_slot] if burst.mj is not None),
            arm_mj=tuple(burst.mj for burst in bursts[arm_slot] if burst.mj is not None),
        )

    def _opened(self, arm: ReadyArm, slot: int) -> _Ready:
        with _blamed(arm):
            process = self.process(arm, slot)
            opened = process.open(arm.path, arm.target, arm.spec, arm.feeds)
            return _Ready(process.warm(self._plan.warmup_cap_s), opened.tick_ns)

    def _turns(self, order: tuple[ReadyArm, ReadyArm], ready: list[_Ready], open_s: float) -> _Turns:
        plan, batch = self._plan, max(one.batch for one in ready)
        run_s = fmean(one.run_s for one in ready)
        burst_s = max(plan.burst_s, plan.burst_runs * batch * run_s) + max(plan.guard_s, run_s)
        blocks = blocks_per_unit(open_s, _BLOCK_BURSTS * burst_s, plan.bursts_s)
        # Two CPUs of a shared machine may run at different speeds, and at other ones a moment later.
        cpu = ready[0].warm.cpu if all(arm.is_one_thread for arm in order) else None
        return _Turns(blocks, batch, cpu)

    def _bursts(self, order: tuple[ReadyArm, ReadyArm], turns: _Turns) -> tuple[list[BurstTaken], list[BurstTaken]]:
        plan = self._plan
        taken: tuple[list[BurstTaken], list[BurstTaken]] = ([], [])
        for slot, count in segments(turns.blocks):
            with _blamed(order[slot]):
                settings = (plan.burst_runs, plan.burst_s, plan.guard_s, turns.batch, turns.cpu, plan.zones)
                bursts = Bursts(count, *settings)
                taken[slot].extend(self.process(order[slot], slot).burst(bursts))
        return taken

    def _left(self, order: tuple[ReadyArm, ReadyArm]) -> None:
        for slot, arm in enumerate(order):
            with _blamed(arm):
                self.process(arm, slot).leave()
        if self.fresh_processes:
            self.close()


@contextmanager
def _blamed(arm: ReadyArm) -> Iterator[None]:
    try:
        yield
    except WrightError as error:
        raise ArmFailed(arm, error) from error


def _milliseconds(bursts: tuple[tuple[int, ...], ...]) -> Leg:
    return [[sample / _NS_PER_MS for sample in burst] for burst in bursts]
