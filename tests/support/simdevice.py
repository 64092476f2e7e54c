"""A simulated device: the ways real ones mislead, each with its own knob, many comparisons at once.

log time = drift(t) + clock regime(t) + wander(t) + offset of the session + noise of the iteration.
Time passes in ticks of ten iterations; what all sessions share is constant within a tick, except drift.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BASE_MS = 10.0
TICK = 10
SESSION_SECONDS = 0.5
WARMUP_SECONDS = 0.1
UNIT_SECONDS = 2 * (SESSION_SECONDS + WARMUP_SECONDS) + 4 * TICK * BASE_MS / 1000


@dataclass(frozen=True)
class Device:
    """Everything is in log units: 0.01 is about one percent."""

    name: str
    iteration: float = 0.01
    session: float = 0.003
    second_session: float = 0.0
    drift_per_second: float = 0.0
    regime: float = 0.0
    dwell_seconds: float = 20.0
    wander: float = 0.0
    memory_seconds: float = 20.0
    heavy: bool = False
    mode: float = 0.0


WHITE = Device("white noise", iteration=0.05, session=0.005)
DRIFT = Device("linear drift", drift_per_second=-0.0005)
REGIMES = Device("regime switching (DVFS)", regime=0.25)
HEAVY = Device("heavy tails", iteration=0.02, session=0.01, heavy=True)
WANDER = Device("autocorrelation", wander=0.05)
OFFSET = Device("per-session offset", session=0.04, second_session=0.02)
BIMODAL = Device("bimodal legs", mode=0.5)
TWO_SPEEDS = Device("two speeds within a unit", regime=0.6, dwell_seconds=0.3)
HOSTILE = (WHITE, DRIFT, REGIMES, HEAVY, WANDER, OFFSET, BIMODAL, TWO_SPEEDS)


@dataclass(frozen=True)
class Units:
    """Samples of both legs, each (runs, units, bursts, samples)."""

    base: np.ndarray
    arm: np.ndarray

    def log_ratios(self, quantile: float = 0.5) -> np.ndarray:
        """The median over pairs of bursts of ln(base / arm), (runs, units)."""
        base, arm = (np.log(np.quantile(legs, quantile, axis=-1)) for legs in (self.base, self.arm))
        return np.median(base - arm, axis=-1)

    def log_averages(self) -> np.ndarray:
        """The mean over pairs of ln(base / arm) of the bursts' means without the slowest fiftieth, (runs, units)."""
        kept = self.base.shape[-1] - round(0.02 * self.base.shape[-1])
        base, arm = (np.log(np.sort(legs, axis=-1)[..., :kept].mean(axis=-1)) for legs in (self.base, self.arm))
        return np.mean(base - arm, axis=-1)


def measure_units(
    device: Device,
    runs: int,
    units: int,
    rng: np.random.Generator,
    *,
    effect: float = 0.0,
    coin: bool = True,
    blocks: int = 1,
) -> Units:
    """Fresh pairs of sessions, bursts mirrored (X Y Y X, so often); a coin says which session is the baseline's."""
    slot = np.array([0, 1, 1, 0] * blocks)
    burst_s = TICK * BASE_MS / 1000
    unit_s = UNIT_SECONDS + 4 * (blocks - 1) * burst_s
    starts = np.arange(units)[:, None] * unit_s + 2 * (SESSION_SECONDS + WARMUP_SECONDS)
    when = (starts + np.arange(len(slot)) * burst_s).ravel()
    session = (np.arange(units)[:, None] * 2 + slot).ravel()
    times = _run(device, when, session, runs, rng).reshape(runs, units, len(slot), TICK)
    first, second = (times[:, :, slot == i] for i in (0, 1))
    shape = (runs, units, 1, 1)
    heads = rng.random(shape) < 0.5 if coin else np.ones(shape, dtype=bool)
    base, arm = np.where(heads, first, second), np.where(heads, second, first)
    return Units(base, arm / (1 + effect))


def odd_sessions(
    share: float,
    slow_runs: float,
    factor: float,
    runs: int,
    units: int,
    rng: np.random.Generator,
    *,
    bursts: int = 1,
    samples: int = 50,
) -> Units:
    """Arms of the same speed, but for a share of the arm's sessions in which so many of the runs are slower."""
    shape = (2, runs, units, bursts, samples)
    noise = 0.005 * rng.standard_normal((*shape[:3], 1, 1)) + 0.02 * rng.standard_normal(shape)
    base, arm = BASE_MS * np.exp(noise)
    odd = rng.random((runs, units, 1, 1)) < share
    slow = odd & (rng.random(arm.shape) < slow_runs)
    return Units(base, np.where(slow, factor * arm, arm))


def measure_sessions(
    device: Device, runs: int, sessions: int, rng: np.random.Generator, *, iterations: int, pause: float
) -> np.ndarray:
    """Sessions one after the other with a cool-down between: (runs, sessions, iterations)."""
    ticks = iterations // TICK
    length = SESSION_SECONDS + 5 * WARMUP_SECONDS + iterations * BASE_MS / 1000 + pause
    when = (np.arange(sessions)[:, None] * length + np.arange(ticks) * TICK * BASE_MS / 1000).ravel()
    session = np.repeat(np.arange(sessions) * 2, ticks)
    return _run(device, when, session, runs, rng).reshape(runs, sessions, iterations)


def _run(device: Device, when: np.ndarray, session: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Times in ms, (runs, ticks, TICK), for ticks at `when` in the given sessions (odd = created second)."""
    sessions = int(session.max()) + 1
    shared = _regime(device, when, runs, rng) + _wander(device, when, runs, rng)
    offsets = _noise(device, (runs, sessions), rng) * device.session
    offsets += device.second_session * (np.arange(sessions) % 2)
    logs = _noise(device, (runs, len(when), TICK), rng) * device.iteration
    logs += (shared + offsets[:, session])[..., None]
    logs += device.drift_per_second * (when[:, None] + np.arange(TICK) * BASE_MS / 1000)
    if device.mode:
        share = rng.uniform(0.2, 0.8, (runs, sessions))[:, session]
        logs += device.mode * (rng.random(logs.shape) < share[..., None])
    return BASE_MS * np.exp(logs)


def _noise(device: Device, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if device.heavy:
        return np.clip(rng.standard_t(1.5, shape), -50, 150)
    return rng.standard_normal(shape)


def _regime(device: Device, when: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Two clock states with exponential dwell times."""
    states = np.zeros((runs, len(when)))
    if not device.regime:
        return states
    stay = (1 + np.exp(-2 * np.diff(when) / device.dwell_seconds)) / 2
    flips = np.concatenate([rng.random((runs, 1)) < 0.5, rng.random((runs, len(stay))) > stay], axis=1)
    return device.regime * (np.cumsum(flips, axis=1) % 2)


def _wander(device: Device, when: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """An Ornstein-Uhlenbeck path: noise that remembers."""
    path = np.zeros((runs, len(when)))
    if not device.wander:
        return path
    keep = np.exp(-np.diff(when) / device.memory_seconds)
    path[:, 0] = rng.standard_normal(runs)
    fresh = rng.standard_normal(path.shape)
    for step, kept in enumerate(keep, start=1):
        path[:, step] = kept * path[:, step - 1] + np.sqrt(1 - kept**2) * fresh[:, step]
    return device.wander * path
