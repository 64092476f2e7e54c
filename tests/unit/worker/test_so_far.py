"""What a child found so far is there for the parent, at little cost."""

import pytest

from modelwright.worker import _so_far
from modelwright.worker._so_far import SoFar, read_so_far


@pytest.fixture
def clock(monkeypatch):
    """Time that passes only when a test says so."""
    now = [100.0]
    monkeypatch.setattr(_so_far.time, "monotonic", lambda: now[0])
    return now


def offered(so_far, clock, cost, steps, step_s):
    """How many of `steps` snapshots are taken when each costs `cost` and the work between them `step_s`."""
    taken = []

    def snapshot():
        clock[0] += cost
        taken.append(1)
        return len(taken)

    for _ in range(steps):
        clock[0] += step_s
        so_far.offer(snapshot)
    return len(taken)


def test_the_last_snapshot_is_read_back(tmp_path):
    so_far = SoFar(str(tmp_path / "so-far"))
    assert read_so_far(tmp_path / "so-far") is None
    so_far.offer(lambda: {"samples": 3})
    assert read_so_far(tmp_path / "so-far") == {"samples": 3}
    assert [path.name for path in tmp_path.iterdir()] == ["so-far"]


@pytest.mark.parametrize(("cost", "step_s"), [(0.001, 0.0001), (0.02, 0.01), (0.5, 0.05), (10.0, 1.0)])
def test_snapshots_take_a_tenth_of_the_time_at_most(tmp_path, clock, cost, step_s):
    began, steps = clock[0], 20_000
    taken = offered(SoFar(str(tmp_path / "so-far")), clock, cost, steps, step_s)
    assert taken * cost <= 0.1 * (clock[0] - began) + 2 * cost


def test_no_more_than_a_second_of_work_is_lost_when_a_snapshot_is_cheap(tmp_path, clock):
    so_far = SoFar(str(tmp_path / "so-far"))
    assert offered(so_far, clock, 0.1, 1000, 0.01) >= 1000 * 0.01 / (1.0 + 0.02)


def test_a_first_snapshot_that_imports_much_does_not_put_the_next_off(tmp_path, clock):
    so_far = SoFar(str(tmp_path / "so-far"))
    assert offered(so_far, clock, 30.0, 1, 0.1) == 1
    assert offered(so_far, clock, 0.001, 1, 0.1) == 1


def test_a_snapshot_that_fails_ends_nothing_and_keeps_the_one_before(tmp_path, clock):
    so_far = SoFar(str(tmp_path / "so-far"))
    so_far.offer(lambda: 1)
    clock[0] += 10
    so_far.offer(lambda: 1 / 0)
    assert read_so_far(tmp_path / "so-far") == 1


def test_without_a_place_nothing_is_computed():
    SoFar(None).offer(lambda: 1 / 0)
