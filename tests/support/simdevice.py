"""A simulated device: the ways real ones mislead, each with its own knob, many comparisons at once.

log time = drift(t) + clock regime(t) + wander(t) + offset of the session + noise of the iteration.
Time passes in ticks of ten iterations; what all sessions share is constant within a tick, except drift.
"""

from __future__ import annotations

import math
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
HOSTILE = (WHITE, DRIFT, REGIMES, HEAVY, WANDER, OFFSET, BIMODAL)


@dataclass(frozen=True)
class Units:
    """Samples of both legs, each (runs, units, samples)."""

    base: np.ndarray
    arm: np.ndarray

    def log_ratios(self) -> np.ndarray:
        """ln(base / arm) of the leg medians, (runs, units)."""
        return np.log(np.median(self.base, axis=-1)) - np.log(np.median(self.arm, axis=-1))

    def log_averages(self) -> np.ndarray:
        """ln(base / arm) of the leg means without the slowest fiftieth, (runs, units)."""
        kept = math.ceil(0.98 * self.base.shape[-1])
        base, arm = (np.sort(legs, axis=-1)[..., :kept].mean(axis=-1) for legs in (self.base, self.arm))
        return np.log(base) - np.log(arm)


def measure_units(
    device: Device, runs: int, units: int, rng: np.random.Generator, *, effect: float = 0.0, coin: bool = True
) -> Units:
    """Fresh pairs of sessions, legs mirrored (X Y Y X); a coin says which session is the baseline's."""
    starts = np.arange(units)[:, None] * UNIT_SECONDS + 2 * (SESSION_SECONDS + WARMUP_SECONDS)
    when = (starts + np.arange(4) * TICK * BASE_MS / 1000).ravel()
    slot = np.array([0, 1, 1, 0])
    session = (np.arange(units)[:, None] * 2 + slot).ravel()
    times = _run(device, when, session, runs, rng).reshape(runs, units, 4, TICK)
    first, second = (times[:, :, slot == i].reshape(runs, units, 2 * TICK) for i in (0, 1))
    heads = rng.random((runs, units, 1)) < 0.5 if coin else np.ones((runs, units, 1), dtype=bool)
    base, arm = np.where(heads, first, second), np.where(heads, second, first)
    return Units(base, arm / (1 + effect))


def odd_sessions(
    share: float, slow_runs: float, factor: float, runs: int, units: int, rng: np.random.Generator, samples: int = 50
) -> Units:
    """Arms of the same speed, but for a share of the arm's sessions in which so many of the runs are slower."""
    noise = 0.005 * rng.standard_normal((2, runs, units, 1)) + 0.02 * rng.standard_normal((2, runs, units, samples))
    base, arm = BASE_MS * np.exp(noise)
    odd = rng.random((runs, units, 1)) < share
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
