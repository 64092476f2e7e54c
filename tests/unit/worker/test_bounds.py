"""The limits of a call: what the user says, what its size grants, and children that stand still."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from modelwright.errors import InputError, StoreError, UsageError
from modelwright.worker import Worker, _limits, _watch, limited, run
from unit.worker import tasks
from unit.worker.conftest import running_with, wait_until

GB = 10**9


@pytest.fixture
def large_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "machine_share", lambda: 100 * GB)


@pytest.mark.usefixtures("large_machine")
def test_a_tiny_model_is_granted_little_of_a_large_machine_and_a_large_one_much() -> None:
    tiny, large = _limits.default_memory(181), _limits.default_memory(2 * GB)
    assert 2 * GB < tiny < 6 * GB
    assert large > 30 * GB
    assert _limits.default_memory(20 * GB) == _limits.default_memory(None) == 100 * GB


def test_a_large_model_gets_more_time_than_a_tiny_one() -> None:
    tiny, large = (_limits.resolve_limits(600, 0, None, None, size).timeout for size in (2000, 4 << 30))
    assert tiny == pytest.approx(600, abs=1)
    assert large == pytest.approx(600 + 4 * 3600)


@pytest.mark.usefixtures("large_machine")
def test_what_the_user_says_goes_before_every_default_and_holds_no_longer_than_it_is_said() -> None:
    with limited(timeout=5, memory=3 * GB):
        found = _limits.resolve_limits(600, 2, None, None, 4 << 30)
    assert (found.timeout, found.memory, found.whole) == (7, 3 * GB, True)
    after = _limits.resolve_limits(600, 0, None, None, 0)
    assert (after.timeout, after.whole) == (600, False)


@pytest.mark.parametrize("wrong", [{"timeout": 0}, {"timeout": float("inf")}, {"memory": 0}, {"memory": -1}])
def test_a_limit_that_is_none_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="is no limit"), limited(**wrong):  # type: ignore[arg-type]
        pass


def test_a_memory_limit_that_the_user_set_is_held_and_the_failure_says_how_to_raise_it() -> None:
    with limited(memory=200_000_000):
        result = run(tasks.allocate.call(2000, hold=30), timeout=30)
    assert result.failure is not None
    assert result.failure.kind == "oom"
    assert "limit of 200 MB" in result.failure.message
    assert "`memory`" in result.failure.advice


def test_time_begins_again_with_progress_but_not_when_the_user_said_how_long_it_may_take() -> None:
    call = tasks.report_progress.call(30, 0.1)
    with Worker() as worker:
        worker.run(tasks.pid.call(), timeout=60).unwrap()
        assert worker.run(call, timeout=2.5).ok
        with limited(timeout=1):
            result = worker.run(call, timeout=60)
    assert result.failure is not None
    assert result.failure.kind == "timeout"
    assert "`timeout`" in result.failure.advice


def _stop(find: Callable[[], int]) -> threading.Thread:
    """Stops a process as soon as it is there."""

    def stop() -> None:
        os.kill(find(), signal.SIGSTOP)

    thread = threading.Thread(target=stop)
    thread.start()
    return thread


def _child_of(pid: int) -> int:
    listing = Path(f"/proc/{pid}/task/{pid}/children")
    assert wait_until(lambda: bool(listing.read_text().split()), 10)
    return int(listing.read_text().split()[0])


@pytest.mark.parametrize("who", ["runner", "supervisor"])
def test_a_child_that_was_stopped_is_noticed_and_its_tree_is_gone(
    who: str, tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_watch, "_SILENCE_S", 1.0)
    with Worker() as worker:
        worker.run(tasks.pid.call(), timeout=60).unwrap()
        assert worker._child is not None
        supervisor = worker._child.process.pid
        thread = _stop(lambda: supervisor if who == "supervisor" else _child_of(supervisor))
        result = worker.run(tasks.spin.call(60), timeout=60, stall=1)
        thread.join()
    assert result.failure is not None
    assert result.failure.kind == "stalled"
    assert running_with(tag) == []


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("exit", r"sys.exit\(0\)"),
        ("raise", "ZeroDivisionError"),
        ("interrupt", "KeyboardInterrupt"),
        ("leave", "exit code 0"),
        ("segfault", "SIGSEGV"),
        ("hang", "limit 2 s"),
        ("eat", "limit of 200 MB"),
    ],
)
def test_however_the_users_own_code_ends_it_is_the_users_code_that_failed(how: str, why: str) -> None:
    memory = 200_000_000 if how == "eat" else None
    with Worker() as worker:
        worker.run(tasks.pid.call(), timeout=60).unwrap()
        with limited(timeout=2 if how == "hang" else 60, memory=memory):
            result = worker.run(tasks.run_user_code.call(how), timeout=60)
    with pytest.raises(InputError, match=why) as caught:
        result.unwrap()
    assert caught.value.problem == "the reader mine.py:f failed"
    assert caught.value.fix.startswith("Repair it.")


def test_a_crash_after_the_users_code_is_not_blamed_on_it() -> None:
    result = run(tasks.crash_after_user_code.call(), timeout=60)
    assert result.failure is not None
    assert (result.failure.kind, result.failure.error) == ("crash", None)


def test_a_full_disk_below_another_error_is_what_failed(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="the disk is full") as caught:
        run(tasks.hide_full_disk.call(str(tmp_path)), timeout=60).unwrap()
    assert str(tmp_path) in caught.value.cause
