from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from modelwright.worker import Worker, run
from unit.worker import tasks
from unit.worker.conftest import memory_group, running_with, scratch_folders, wait_until

Program = Callable[[str], Popen[bytes]]


def test_a_task_that_takes_too_long_is_a_timeout_and_the_log_shows_where_it_stood(tag: str) -> None:
    with Worker() as worker:
        # The child is up already, so that the limit is reached in the task and not on the way to it.
        worker.run(tasks.pid.call(), timeout=60).unwrap()
        result = worker.run(tasks.sleep.call(600), timeout=0.5)
    assert result.failure is not None
    assert result.failure.kind == "timeout"
    assert "limit 0.5 s" in result.failure.message
    assert result.log is not None
    assert "in sleep" in result.log.read_text()
    assert running_with(tag) == []


def test_a_busy_task_is_a_timeout_not_a_stall() -> None:
    result = run(tasks.spin.call(60), timeout=1.2, stall=0.4)
    assert result.failure is not None
    assert result.failure.kind == "timeout"


def test_a_task_that_does_nothing_is_stalled_long_before_its_timeout() -> None:
    result = run(tasks.sleep.call(600), timeout=600, stall=0.4)
    assert result.failure is not None
    assert result.failure.kind == "stalled"
    assert result.duration_s >= 0.4


@pytest.mark.parametrize(
    "call", [tasks.report_progress.call(30, 0.1), tasks.print_slowly.call(3.0)], ids=["progress", "output"]
)
def test_a_slow_task_that_moves_is_not_stalled(call: object) -> None:
    assert run(call, timeout=60, stall=2.0).ok  # type: ignore[arg-type]


def test_a_daemon_that_left_our_session_dies_with_the_timeout(tag: str) -> None:
    result = run(tasks.double_fork_and_hang.call(tag), timeout=1)
    assert result.failure is not None
    assert result.failure.kind == "timeout"
    assert running_with(tag) == []


def test_a_daemon_left_by_a_successful_task_dies_when_the_worker_closes(tag: str) -> None:
    assert run(tasks.leave_daemon_and_return.call(tag), timeout=20).unwrap() == "returned"
    assert running_with(tag) == []


def test_more_memory_than_the_limit_is_oom(tag: str) -> None:
    result = run(tasks.allocate.call(2000, hold=30), timeout=30, memory_limit=200 << 20)
    assert result.failure is not None
    assert result.failure.kind == "oom"
    assert "more than its limit of 210 MB" in result.failure.message
    assert result.peak_rss_bytes is not None
    assert 200 << 20 < result.peak_rss_bytes < 1000 << 20
    assert running_with(tag) == []


def test_the_memory_of_grandchildren_counts() -> None:
    result = run(tasks.allocate_in_child.call(400), timeout=30, memory_limit=200 << 20)
    assert result.failure is not None
    assert result.failure.kind == "oom"


@pytest.mark.skipif(sys.platform != "linux", reason="others do not tell these pages apart")
def test_pages_of_a_mapped_file_are_not_held(tmp_path: Path) -> None:
    """As the weights that an exporter has written and reads again: the system takes them back when it needs to."""
    path = tmp_path / "weights"
    with path.open("wb") as file:
        file.truncate(400 << 20)
    result = run(tasks.read_mapped.call(str(path), hold=1.5), timeout=30, memory_limit=200 << 20)
    assert result.unwrap() == 400 << 20
    assert result.peak_rss_bytes is not None
    assert result.peak_rss_bytes > 400 << 20


def test_memory_under_the_limit_is_fine() -> None:
    assert run(tasks.allocate.call(40), timeout=20, memory_limit=400 << 20).ok


def test_a_memory_error_is_oom() -> None:
    result = run(tasks.raise_memory_error.call(), timeout=20)
    assert result.failure is not None
    assert (result.failure.kind, result.failure.signal) == ("oom", None)
    assert "no room for 12 GB" in result.failure.message


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A memory cgroup of 120 MiB."""
    root = memory_group()
    if root is None:
        pytest.skip("this machine does not let us make a memory cgroup")
    group = root / f"modelwright-test-{uuid.uuid4().hex[:8]}"
    group.mkdir()
    names = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max")
    for name in names:
        if (group / name).exists():
            (group / name).write_text(str(120 << 20))
    if (group / "memory.swap.max").exists():
        (group / "memory.swap.max").write_text("0")
    yield group
    wait_until(lambda: not (group / "cgroup.procs").read_text(), 60)
    group.rmdir()


def test_a_kill_by_the_kernel_for_memory_is_oom(small_group: Path, program: Program, tag: str) -> None:
    parent = program(f"""
        import os, pathlib
        pathlib.Path({str(small_group)!r}, "cgroup.procs").write_text(str(os.getpid()))
        failure = run(tasks.allocate.call(2000), timeout=30, memory_limit=1 << 40).failure
        print(failure.kind, failure.signal, failure.message, sep="|", file=sys.stderr)
    """)
    out, err = parent.communicate(timeout=40)
    kind, number, message = err.decode().strip().split("|")
    assert (out, parent.returncode) == (b"", 0)
    assert (kind, int(number)) == ("oom", signal.SIGKILL)
    assert small_group.name in message
    assert running_with(tag) == []


def test_four_bad_children_are_four_typed_failures_with_a_clean_stdout(program: Program, tag: str) -> None:
    parent = program(f"""
        results = [
            run(tasks.segfault.call(), timeout=20),
            run(tasks.allocate.call(2000, 30), timeout=20, memory_limit=150 << 20),
            run(tasks.double_fork_and_hang.call({tag!r}), timeout=1),
            run(tasks.flood.call(10), timeout=20),
        ]
        for result in results:
            print(result.failure.kind, result.log.stat().st_size, file=sys.stderr)
        text = results[-1].log.read_text()
        assert "FIRST LINE" in text and "LAST LINE" in text and "bytes cut here" in text
        assert "failed after printing" in text
    """)
    out, err = parent.communicate(timeout=60)
    assert (out, parent.returncode) == (b"", 0), err.decode()
    kinds, sizes = zip(*(line.split() for line in err.decode().splitlines()), strict=True)
    assert kinds == ("crash", "oom", "timeout", "raised")
    assert all(int(size) < 1_300_000 for size in sizes)
    assert running_with(tag) == []
    assert scratch_folders(parent.pid) == []


def test_nothing_outlives_a_parent_that_is_killed(program: Program, tag: str) -> None:
    parent = program(f"""
        run(tasks.hang_with_child.call({tag!r}), timeout=600, on_progress=lambda *_: print("up", flush=True))
    """)
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"up\n"
    assert wait_until(lambda: len(running_with(tag)) == 4, 60)
    assert scratch_folders(parent.pid) != []
    parent.kill()
    assert wait_until(lambda: running_with(tag) == [], 60)
    assert wait_until(lambda: scratch_folders(parent.pid) == [], 60)


def test_nothing_outlives_a_killed_parent_even_when_a_fork_of_it_holds_our_sockets(program: Program, tag: str) -> None:
    parent = program("""
        import os, time
        def up(*_):
            if os.fork() == 0:
                os.environ.clear()
                os.close(1), os.close(2)
                time.sleep(600)
                os._exit(0)
            print("up", flush=True)
        run(tasks.hang_with_child.call("x"), timeout=600, on_progress=up)
    """)
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"up\n"
    parent.kill()
    # The parent's own fork carries the tag too; only it may be left.
    assert wait_until(lambda: len(running_with(tag)) == 1, 60)
    for left in running_with(tag):
        os.kill(left, signal.SIGKILL)


def test_the_whole_tree_goes_when_its_supervisor_is_asked_to_end(program: Program, tag: str) -> None:
    parent = program("""
        up = lambda *_: print("up", flush=True)
        result = run(tasks.hang_with_child.call("x"), timeout=60, on_progress=up)
        print(result.failure.kind, file=sys.stderr)
    """)
    assert parent.stdout is not None
    parent.stdout.readline()
    supervisor = int(Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()[0])
    os.kill(supervisor, signal.SIGTERM)
    assert parent.wait(10) == 0
    assert parent.stderr is not None
    assert parent.stderr.read() == b"crash\n"
    assert running_with(tag) == []


def test_ctrl_c_kills_the_tree_and_is_not_swallowed(tag: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tasks.hang_with_child.call(tag), timeout=60, on_progress=lambda *_: tasks.interrupt_parent_soon(0.0))
    assert running_with(tag) == []


def test_a_progress_callback_that_raises_ends_the_child(tag: str) -> None:
    def refuse(*_: object) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError):
        run(tasks.hang_with_child.call(tag), timeout=60, on_progress=refuse)
    assert running_with(tag) == []


def test_calls_in_two_threads_keep_their_results_and_logs_apart() -> None:
    results = {}

    def work(name: str) -> None:
        results[name] = run(tasks.say.call(name), timeout=20)

    threads = [threading.Thread(target=work, args=(f"thread {index}",)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, result in results.items():
        assert result.log is not None
        assert result.log.read_text() == f"{name}\n"


def test_a_child_outlives_the_thread_that_started_it() -> None:
    with contextlib.closing(Worker()) as worker:
        first: list[int] = []
        starter = threading.Thread(target=lambda: first.append(worker.run(tasks.pid.call(), timeout=20).unwrap()))
        starter.start()
        starter.join()
        time.sleep(0.1)
        assert worker.run(tasks.pid.call(), timeout=20).unwrap() == first[0]
