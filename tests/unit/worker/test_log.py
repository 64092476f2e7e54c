from __future__ import annotations

import os
import time
from pathlib import Path

from modelwright.worker import run
from modelwright.worker._log import HEAD_BYTES, TAIL_BYTES, BoundedLog
from modelwright.worker._logs import KEPT_LOGS, prune_logs
from unit.worker import tasks


def test_a_short_log_is_kept_as_it_is(tmp_path: Path) -> None:
    log = BoundedLog()
    log.begin(str(tmp_path / "a.log"))
    log.write(b"one\n")
    log.write(b"two\n")
    assert log.finish() == 8
    assert (tmp_path / "a.log").read_bytes() == b"one\ntwo\n"


def test_a_long_log_keeps_head_and_tail_and_says_how_much_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    log = BoundedLog()
    log.begin(str(path))
    log.write(b"BEGIN")
    for _ in range(300):
        log.write(b"x" * (64 << 10))
    log.write(b"END")
    total = log.finish()
    text = path.read_bytes()
    assert text.startswith(b"BEGIN")
    assert text.endswith(b"END")
    assert len(text) < HEAD_BYTES + TAIL_BYTES + (128 << 10)
    cut = int(text.split(b"[modelwright: ")[1].split()[0])
    note = f"\n[modelwright: {cut} bytes cut here]\n".encode()
    assert cut + len(text) - len(note) == total


def test_output_between_two_calls_goes_to_the_next_log(tmp_path: Path) -> None:
    log = BoundedLog()
    log.write(b"early ")
    log.begin(str(tmp_path / "a.log"))
    log.write(b"late")
    log.finish()
    assert (tmp_path / "a.log").read_bytes() == b"early late"


def test_a_silent_success_leaves_no_log(home: Path) -> None:
    assert run(tasks.add.call(1), timeout=20).log is None
    assert list((home / "logs").iterdir()) == []


def test_output_of_python_and_of_native_code_is_in_the_log_of_its_call() -> None:
    log = run(tasks.say.call("from python"), timeout=20).log
    assert log is not None
    assert log.read_text() == "from python\n"
    log = run(tasks.say_from_c.call("from C"), timeout=20).log
    assert log is not None
    assert log.read_text() == "from C"


def test_a_log_that_cannot_be_written_does_not_lose_the_result(home: Path) -> None:
    home.mkdir()
    (home / "logs").symlink_to("/proc/self/task")  # exists, and refuses new files even from root
    failed = run(tasks.raise_value_error.call("x"), timeout=20)
    assert failed.failure is not None
    assert (failed.failure.kind, failed.log) == ("raised", None)


def test_a_home_that_cannot_be_made_does_not_stop_the_work(home: Path) -> None:
    home.write_text("a file where the folder should be")
    result = run(tasks.say.call("unheard"), timeout=20)
    assert (result.ok, result.log) == (True, None)


def test_old_logs_are_pruned_and_young_ones_spared(home: Path) -> None:
    logs = home / "logs"
    logs.mkdir(parents=True)
    for index in range(KEPT_LOGS + 10):
        path = logs / f"{index}.log"
        path.write_text("x")
        os.utime(path, (time.time() - 5000 + index,) * 2)
    (logs / "young.log").write_text("x")
    prune_logs()
    left = {path.name for path in logs.iterdir()}
    assert len(left) == KEPT_LOGS
    assert "young.log" in left
    assert "0.log" not in left
