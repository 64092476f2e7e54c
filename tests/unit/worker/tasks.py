"""What the children in these tests do, mostly badly."""

from __future__ import annotations

import _thread
import ctypes
import errno
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from modelwright.errors import InputError, WrightError
from modelwright.worker import progress, task, user_code


class HomemadeError(WrightError):
    """A subclass of the user's own."""


@task
def echo(value: Any) -> Any:
    return value


@task
def add(left: int, right: int = 0) -> int:
    return left + right


@task
def pid() -> int:
    return os.getpid()


@task
def segfault() -> None:
    ctypes.string_at(0)


@task
def print_elsewhere_and(what: Literal["crash", "hang"], elsewhere: Path) -> None:
    """As a task does that listens to native code."""
    with elsewhere.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.abort() if what == "crash" else time.sleep(600)


@task
def abort() -> None:
    os.abort()


@task
def leave(code: int) -> None:
    os._exit(code)


@task
def polite_exit(code: int) -> None:
    sys.exit(code)


@task
def kill_self(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(60)


@task
def sleep(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"


@task
def spin(seconds: float) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return "spun"


@task
def burn(cpu_seconds: float) -> str:
    """However long that takes on a busy machine."""
    end = time.process_time() + cpu_seconds
    while time.process_time() < end:
        pass
    return "burnt"


@task
def count_fast(steps: int) -> None:
    progress("begins")
    for step in range(1, steps):
        progress("some", step / steps)
    progress("all", 1.0)
    progress("ends")


@task
def report_progress(steps: int, pause: float) -> int:
    for step in range(steps):
        progress(f"step {step}", step / steps)
        time.sleep(pause)
    return steps


@task
def print_slowly(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        os.write(1, b".\n")
        time.sleep(0.05)


@task
def raise_value_error(text: str) -> None:
    raise ValueError(text)


@task
def raise_input_error() -> None:
    raise InputError("The model is bad.", cause="it has no nodes", fix="Give one with nodes.")


@task
def raise_homemade_error() -> None:
    raise HomemadeError("p", cause="c", fix="f")


@task
def raise_memory_error() -> None:
    raise MemoryError("no room for 12 GB")


@task
def import_missing() -> None:
    __import__("a_package_nobody_has")


@task
def give_unpicklable() -> Any:
    return threading.Lock()


@task
def flood(megabytes: int) -> None:
    line = b"x" * 1023 + b"\n"
    os.write(1, b"FIRST LINE\n")
    for _ in range(megabytes * 512):
        os.write(1, line)
        os.write(2, line)
    os.write(2, b"LAST LINE\n")
    raise RuntimeError("failed after printing")


@task
def say(text: str) -> None:
    print(text)


@task
def say_from_c(text: str) -> None:
    ctypes.CDLL(None).printf(text.encode())


@task
def write_garbage_everywhere() -> str:
    garbage = os.urandom(4096)
    for number in range(1, 256):
        try:
            os.write(number, garbage)
        except OSError:
            continue
    return "survived"


@task
def close_everything() -> str:
    os.closerange(3, 256)
    return "never arrives"


@task
def double_fork_and_hang(marker: str) -> None:
    """A daemon that left our session and group, and a parent that hangs."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", marker])
        os._exit(0)
    time.sleep(600)


@task
def leave_daemon_and_return(marker: str) -> str:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", marker], start_new_session=True)
    return "returned"


@task
def hang_with_child(marker: str) -> None:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", marker], start_new_session=True)
    progress("hanging")
    time.sleep(600)


@task
def fork_and_return() -> int:
    if os.fork() == 0:
        return -1
    os.wait()
    return os.getpid()


@task
def allocate(megabytes: int, hold: float = 0.0) -> int:
    """Touches every page, a little at a time."""
    blocks = []
    for _ in range(megabytes // 4):
        blocks.append(b"\x01" * (4 << 20))
        time.sleep(0.001)
    time.sleep(hold)
    return len(blocks)


@task
def read_mapped(path: str, hold: float = 0.0) -> int:
    """Every page of a file, through a mapping; how many bytes of it are resident at the end."""
    with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        count = sum(1 for place in range(0, len(mapped), mmap.PAGESIZE) if mapped[place] == 0)
        time.sleep(hold)
        return count * mmap.PAGESIZE


@task
def allocate_in_child(megabytes: int) -> None:
    code = f"import time; b = b'x' * ({megabytes} << 20); time.sleep(30)"
    subprocess.run([sys.executable, "-c", code], check=True)


@task
def double_array(array: Any) -> Any:
    array *= 2
    return array


@task
def search_path() -> list[str]:
    return list(sys.path)


@task
def modules_and_environment() -> tuple[list[str], str]:
    return sorted(sys.modules), sys.executable


@task
def variable(name: str) -> str | None:
    return os.environ.get(name)


@task
def run_user_code(how: str) -> None:
    """What a user's function may do instead of its work."""
    deeds: dict[str, Callable[[], object]] = {
        "exit": lambda: sys.exit(0),
        "raise": lambda: 1 // 0,
        "interrupt": lambda: _thread.interrupt_main() or time.sleep(60),
        "leave": lambda: os._exit(0),
        "segfault": lambda: ctypes.string_at(0),
        "hang": lambda: time.sleep(600),
        "eat": lambda: (bytearray(b"x") * (2 << 30), time.sleep(60)),
    }
    with user_code("the reader mine.py:f", "Repair it."):
        deeds[how]()


@task
def crash_after_user_code() -> None:
    with user_code("the reader mine.py:f", "Repair it."):
        pass
    ctypes.string_at(0)


@task
def disk_full() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@task
def hide_full_disk(folder: str) -> None:
    try:
        raise OSError(errno.ENOSPC, "No space left on device")
    except OSError as error:
        raise InputError(f"{folder} holds a bad model", cause="it is cut short", fix="Copy it again.") from error


def unmarked() -> int:
    return 1


def interrupt_parent_soon(delay: float) -> threading.Timer:
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer
