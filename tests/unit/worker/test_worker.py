from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from modelwright.worker import Worker, run
from modelwright.worker._payload import INLINE_BYTES, Payload, Scratch, pack, unpack
from unit.worker import tasks
from unit.worker.conftest import running_with, scratch_folders


def test_calls_share_one_warm_process(tag: str) -> None:
    with Worker() as worker:
        pids = {worker.run(tasks.pid.call(), timeout=20).unwrap() for _ in range(5)}
        assert len(pids) == 1
    assert running_with(tag) == []


def test_a_warm_call_costs_a_small_part_of_a_new_interpreter() -> None:
    """In CPU time, here and in the child: other processes on the machine do not count."""
    costs = []
    with Worker() as worker:
        for _ in range(200):
            before = time.process_time()
            result = worker.run(tasks.add.call(1, right=2), timeout=60)
            assert result.cpu_s is not None
            costs.append(time.process_time() - before + result.cpu_s)
    warm, interpreter = statistics.median(costs), min(_interpreter_cpu_s() for _ in range(3))
    print(f"warm {warm * 1e3:.3f} ms, an interpreter {interpreter * 1e3:.1f} ms")
    assert warm < interpreter / 4


def _interpreter_cpu_s() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("bad", [tasks.segfault.call(), tasks.sleep.call(60)], ids=["crash", "timeout"])
def test_after_a_failure_the_next_call_gets_a_new_child(bad: object, tag: str) -> None:
    with Worker() as worker:
        first = worker.run(tasks.pid.call(), timeout=20).unwrap()
        assert not worker.run(bad, timeout=0.5).ok  # type: ignore[arg-type]
        second = worker.run(tasks.pid.call(), timeout=20).unwrap()
        assert first != second
    assert running_with(tag) == []


def test_an_exception_keeps_the_child_warm() -> None:
    with Worker() as worker:
        first = worker.run(tasks.pid.call(), timeout=20).unwrap()
        assert not worker.run(tasks.raise_value_error.call("x"), timeout=20).ok
        assert worker.run(tasks.pid.call(), timeout=20).unwrap() == first


def test_each_warm_call_has_its_own_cost_and_log() -> None:
    with Worker() as worker:
        large = worker.run(tasks.allocate.call(200), timeout=20)
        small = worker.run(tasks.say.call("second"), timeout=20)
        silent = worker.run(tasks.add.call(1), timeout=20)
        crash = worker.run(tasks.segfault.call(), timeout=20)
    assert large.peak_rss_bytes is not None
    assert small.peak_rss_bytes is not None
    assert crash.peak_rss_bytes is not None
    assert large.peak_rss_bytes > small.peak_rss_bytes + (100 << 20)
    assert large.peak_rss_bytes > crash.peak_rss_bytes + (100 << 20)
    assert large.cpu_s is not None
    assert crash.cpu_s is not None
    assert crash.cpu_s < large.cpu_s
    assert large.log is None
    assert small.log is not None
    assert small.log.read_text() == "second\n"
    assert silent.log is None


def test_arguments_that_cannot_travel_are_an_error_at_once_and_the_worker_lives() -> None:
    with Worker() as worker:
        with pytest.raises((TypeError, AttributeError)):
            worker.run(tasks.echo.call(lambda: 1), timeout=20)
        assert worker.run(tasks.add.call(1), timeout=20).unwrap() == 1


def test_a_large_array_goes_there_and_back_through_a_file() -> None:
    array = np.arange(25_000_000, dtype=np.float64)
    with Worker() as worker:
        doubled = worker.run(tasks.double_array.call(array), timeout=60).unwrap()
        folders = scratch_folders(os.getpid())
        files = [file for folder in folders for file in folder.iterdir()]
    assert folders != []
    assert files == []
    assert scratch_folders(os.getpid()) == []
    assert doubled.nbytes == 200_000_000
    assert doubled.flags.writeable
    assert doubled[-1] == 2 * array[-1] == 49_999_998.0
    assert array[1] == 1.0


def test_a_child_that_dies_with_a_large_argument_leaves_no_scratch() -> None:
    result = run(tasks.kill_self.call(number=11), timeout=20)
    assert not result.ok
    with Worker() as worker:
        assert not worker.run(tasks.raise_value_error.call("x" * 1_000_000), timeout=20).ok
        assert not worker.run(tasks.leave.call(np.zeros(1_000_000)), timeout=20).ok  # type: ignore[arg-type]
    assert scratch_folders(os.getpid()) == []


def test_small_values_stay_inline_and_large_ones_do_not(tmp_path: Path) -> None:
    scratch = Scratch((str(tmp_path),))
    small = pack({"a": np.arange(10)}, scratch)
    assert small.file is None
    assert unpack(small)["a"].tolist() == list(range(10))
    values = [np.arange(20_000), "text", np.ones((3, 5), np.float16), b"y" * 100_000, np.zeros(0)]
    large = pack(values, scratch)
    assert large.file is not None
    assert len(large.parts) == 0
    back = unpack(large)
    for one, other in zip(values, back, strict=True):
        assert np.array_equal(one, other)
    assert list(tmp_path.iterdir()) == []


def test_a_parcel_holds_what_fits_the_socket(tmp_path: Path) -> None:
    parcel = pack([b"z" * 1000 for _ in range(1)], Scratch((str(tmp_path),)))
    assert isinstance(parcel, Payload)
    assert sum(map(len, parcel.parts)) < INLINE_BYTES


def test_a_closed_worker_can_be_closed_again() -> None:
    worker = Worker()
    worker.run(tasks.add.call(1), timeout=20).unwrap()
    worker.close()
    worker.close()
