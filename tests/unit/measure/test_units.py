"""What a unit records, and how short runs are timed together."""

import os
import sys
from types import SimpleNamespace

import pytest

from modelwright.judge import Verdict, VerdictKind, finding
from modelwright.measure import UnitRecord
from modelwright.measure.races._result import _contradictions
from modelwright.measure.races._unit import _Ready
from modelwright.measure.timing._leg import TimedLoop, _tick, tick_ns
from modelwright.measure.timing._session_tasks import Warm, _cpu, _kept_on
from modelwright.measure.timing._sink import SampleSink


def record(*, base_first):
    return UnitRecord(1, None, base_first, 1, 1, (), (), ((1_000_000,),), ((2_000_000,),), 0.1, 0.2)


def test_a_sentinel_is_read_by_slot_whatever_the_coin_called_its_legs():
    assert record(base_first=True).slots_ms == ([[1.0]], [[2.0]])
    assert record(base_first=False).slots_ms == ([[2.0]], [[1.0]])


@pytest.mark.parametrize(
    ("fastest_ns", "tick", "batch"), [(70_000, 1, 1), (70_000, 35, 1), (70_000, 100, 3), (5_000, 100, 40), (1, 1, 2000)]
)
def test_so_many_runs_are_timed_together_that_the_clock_ticks_thousands_of_times(fastest_ns, tick, batch):
    assert _Ready(Warm((fastest_ns * 3, fastest_ns), None), tick).batch == batch


def test_the_tick_of_the_clock_is_seen():
    assert 0 < tick_ns() < 100_000_000


@pytest.mark.parametrize(
    ("steps", "tick"),
    [
        ([100, 200, 100, 300], 100),
        ([279, 280, 559, 558, 279], 278),
        ([180, 184, 190, 191, 1500], 4),
        ([1_000_000] * 9, 1_000_000),
        ([], 100_000_000),
    ],
)
def test_a_tick_is_told_from_the_time_a_reading_takes(steps, tick):
    assert _tick(steps) == tick


def test_a_sample_of_a_batch_is_the_mean_of_its_runs():
    runs = []
    session = SimpleNamespace(
        native=SimpleNamespace(run=lambda names, feeds: runs.append(1)),
        run=lambda feeds, names: runs.append(1),
        outputs=[],
    )
    loop = TimedLoop(session, {}, SampleSink(), batch=50)
    loop.exactly(1)
    assert len(runs) == 1  # the first run is checked, not timed
    taken = loop.at_least(4, 0)
    assert len(taken) == 4
    assert len(runs) == 1 + 4 * 50


@pytest.mark.skipif(sys.platform != "linux", reason="threads are kept on a CPU on Linux")
def test_a_thread_is_kept_on_a_cpu_for_its_bursts_only():
    before = os.sched_getaffinity(0)
    cpu = _cpu()
    assert cpu in before
    with _kept_on(cpu):
        assert os.sched_getaffinity(0) == {cpu}
    with _kept_on(1 << 20), _kept_on(None):  # no such CPU: it goes where it may
        assert os.sched_getaffinity(0) == before
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize(("shown", "warned"), [(1.0, True), (0.95, False)])
def test_times_that_contradict_the_pairs_get_a_word(shown, warned):
    proven = Verdict(VerdictKind.IMPROVED, 0.5, 0.046, 0.03, 0.06, 14, "", 0.01, 0.046, 0, 3, 0.02, 0.05)
    base = SimpleNamespace(times_ms=(1.0,))
    arm = SimpleNamespace(name="new", times_ms=(shown * 1.25 if warned else shown,), verdict=finding((proven,)))
    words = list(_contradictions([base, arm], (0.5,)))
    assert bool(words) is warned
    assert all("-20.0% for new, pairs of one moment +4.6%" in text for text in words)
