"""Windows: a job object instead of a supervising process. When the parent dies, the job takes the tree along.

A thread of the parent stands in for the supervisor and speaks its language; the rest of the room is the same.
"""

from __future__ import annotations

import sys
from pathlib import Path

_LAUNCHER_VARIABLE = "__PYVENV_LAUNCHER__"


def past_launcher(python: str) -> tuple[str, dict[str, str]]:
    """The interpreter behind a virtual environment's python.exe, and the variable that makes it act for it.

    That python.exe only starts another process, which would escape the job and could not take our socket.
    """
    config = Path(python).parent.parent / "pyvenv.cfg"
    if not config.is_file():
        return python, {}
    lines = (line.partition("=") for line in config.read_text(encoding="utf-8").splitlines())
    found = {key.strip(): value.strip() for key, _, value in lines}
    behind = found.get("executable") or str(Path(found.get("home", "")) / "python.exe")
    return behind, {_LAUNCHER_VARIABLE: python}


if sys.platform == "win32":
    import contextlib
    import ctypes
    import os
    import socket
    import subprocess
    import threading
    from ctypes import wintypes
    from typing import Literal

    from modelwright.worker._channel import Channel
    from modelwright.worker._log import BoundedLog
    from modelwright.worker._messages import Activity, Begin, Died, End, Ended, Kill, Look

    THIS_PROCESS = -1
    _KILL_ON_JOB_CLOSE = 0x2000
    _BASIC_ACCOUNTING = 1
    _PROCESS_LIST = 3
    _EXTENDED_LIMITS = 9
    _QUERY_LIMITED = 0x1000
    _MOST_PROCESSES = 1024
    _TICKS_PER_S = 10_000_000
    _TURN_S = 0.05
    _KILL_S = 5.0
    _CHUNK = 1 << 16
    _kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel32.CreateJobObjectW.restype = wintypes.HANDLE
    _kernel32.OpenProcess.restype = wintypes.HANDLE

    class _Limits(ctypes.Structure):
        """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

        _fields_ = (
            ("times", ctypes.c_int64 * 2),
            ("flags", ctypes.c_uint32),
            ("working_sets", ctypes.c_size_t * 2),
            ("active_processes", ctypes.c_uint32),
            ("affinity", ctypes.c_size_t),
            ("classes", ctypes.c_uint32 * 2),
            ("io_counters", ctypes.c_uint64 * 6),
            ("memory", ctypes.c_size_t * 4),
        )

    class _Accounting(ctypes.Structure):
        """JOBOBJECT_BASIC_ACCOUNTING_INFORMATION."""

        _fields_ = (
            ("user", ctypes.c_int64),
            ("kernel", ctypes.c_int64),
            ("period", ctypes.c_int64 * 2),
            ("faults", ctypes.c_uint32),
            ("processes", ctypes.c_uint32),
            ("active", ctypes.c_uint32),
            ("terminated", ctypes.c_uint32),
        )

    class _ProcessList(ctypes.Structure):
        """JOBOBJECT_BASIC_PROCESS_ID_LIST, with room for more processes than a stage starts."""

        _fields_ = (
            ("assigned", ctypes.c_uint32),
            ("count", ctypes.c_uint32),
            ("pids", ctypes.c_size_t * _MOST_PROCESSES),
        )

    class _Memory(ctypes.Structure):
        """PROCESS_MEMORY_COUNTERS."""

        _fields_ = (
            ("size", ctypes.c_uint32),
            ("faults", ctypes.c_uint32),
            ("peak_working_set", ctypes.c_size_t),
            ("working_set", ctypes.c_size_t),
            ("others", ctypes.c_size_t * 6),
        )

    def peak_working_set(process: int) -> int | None:
        memory = _memory(process)
        return None if memory is None else memory.peak_working_set

    def start(command: list[str], data: socket.socket, control: Channel) -> subprocess.Popen[bytes]:
        """Start a runner inside a job. It waits for its socket, so nothing runs before the job holds it."""
        output, printed = os.pipe()
        with contextlib.ExitStack() as on_error:
            on_error.callback(os.close, output)
            process = _popen(command, printed)
            on_error.callback(process.kill)
            supervisor = _Supervisor(process, output, control)
            assert process.stdin is not None
            with process.stdin as line:
                line.write(data.share(process.pid))
            on_error.pop_all()
        threading.Thread(target=supervisor.watch, name="modelwright-supervisor", daemon=True).start()
        return process

    def _popen(command: list[str], printed: int) -> subprocess.Popen[bytes]:
        python, extra = past_launcher(command[0])
        try:
            return subprocess.Popen(
                [python, *command[1:]],
                env={**os.environ, **extra},
                stdin=subprocess.PIPE,
                stdout=printed,
                stderr=printed,
                creationflags=subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP,
            )
        finally:
            os.close(printed)

    class _Supervisor:
        """Watches one runner from a thread. The job handle is the leash: closing it ends the tree."""

        def __init__(self, process: subprocess.Popen[bytes], output: int, control: Channel) -> None:
            self._process = process
            self._handle = int(process._handle)  # type: ignore[attr-defined]
            self._output = output
            self._control = control
            self._job = _make_job(self._handle)
            self._log = BoundedLog()
            self._log_turn = threading.Lock()
            self._limit: int | None = None
            self._held = 0
            self._peak = 0
            self._killed_for: Literal["request", "memory_limit"] | None = None
            self._drainer = threading.Thread(target=self._drain, name="modelwright-log", daemon=True)

        def watch(self) -> None:
            self._drainer.start()
            while self._process.poll() is None and not self._control.closed:
                order = self._control.receive(_TURN_S)
                if order is not None:
                    self._obey(order)
                self._check_memory()
            # A runner that died at once may be gone before its call was heard of: its last words belong to that call.
            for order in self._control.drain():
                self._obey(order)
            cpu_s = _cpu_s(self._job)
            _kernel32.TerminateJobObject(wintypes.HANDLE(self._job), 1)
            _kernel32.CloseHandle(wintypes.HANDLE(self._job))
            code = self._process.wait()
            self._drainer.join(_KILL_S)
            with self._log_turn:
                seen = self._log.finish()
            # Of a process that has ended Windows says 0: what was seen while it lived is what is known.
            peak, held = self._peak or None, self._held or None
            self._control.send(Died(code, self._killed_for, cpu_s, peak, None, seen, held_bytes=held))
            self._control.close()

        def _obey(self, order: object) -> None:
            with self._log_turn:
                match order:
                    case Begin(log, memory_limit):
                        self._log.begin(log)
                        self._limit = memory_limit
                    case End():
                        self._limit = None
                        self._control.send(Ended(self._log.finish()))
                    case Look():
                        self._control.send(Activity(self._log.total, _cpu_s(self._job) or 0.0))
                    case Kill():
                        self._killed_for = "request"
                        self._process.kill()

        def _check_memory(self) -> None:
            """The whole job is weighed: the runner and all it started."""
            held = _job_memory(self._job)
            if held is None:
                return
            self._held, largest = held
            self._peak = max(self._peak, largest)
            if self._limit is not None and self._held > self._limit:
                self._killed_for = "memory_limit"
                self._process.kill()

        def _drain(self) -> None:
            while chunk := os.read(self._output, _CHUNK):
                with self._log_turn:
                    self._log.write(chunk)
            os.close(self._output)

    def _make_job(process: int) -> int:
        job = _kernel32.CreateJobObjectW(None, None)
        limits = _Limits(flags=_KILL_ON_JOB_CLOSE)
        size = ctypes.sizeof(limits)
        ready = _kernel32.SetInformationJobObject(
            wintypes.HANDLE(job), _EXTENDED_LIMITS, ctypes.byref(limits), size
        ) and _kernel32.AssignProcessToJobObject(wintypes.HANDLE(job), wintypes.HANDLE(process))
        if not ready:
            raise ctypes.WinError(ctypes.get_last_error())
        return int(job)

    def _cpu_s(job: int) -> float | None:
        times = _Accounting()
        size = ctypes.sizeof(times)
        if not _kernel32.QueryInformationJobObject(
            wintypes.HANDLE(job), _BASIC_ACCOUNTING, ctypes.byref(times), size, None
        ):
            return None
        return float(times.user + times.kernel) / _TICKS_PER_S

    def _job_memory(job: int) -> tuple[int, int] | None:
        """What all processes of the job hold now, and the most that one of them ever held; None when nobody says."""
        listed = _ProcessList()
        size = ctypes.sizeof(listed)
        if not _kernel32.QueryInformationJobObject(
            wintypes.HANDLE(job), _PROCESS_LIST, ctypes.byref(listed), size, None
        ):
            return None
        found = [memory for pid in listed.pids[: listed.count] if (memory := _memory_of(pid)) is not None]
        if not found:
            return None
        return sum(memory.working_set for memory in found), max(memory.peak_working_set for memory in found)

    def _memory_of(pid: int) -> _Memory | None:
        process = _kernel32.OpenProcess(_QUERY_LIMITED, 0, pid)
        if not process:
            return None
        try:
            return _memory(int(process))
        finally:
            _kernel32.CloseHandle(wintypes.HANDLE(process))

    def _memory(process: int) -> _Memory | None:
        memory = _Memory(size=ctypes.sizeof(_Memory))
        found = _kernel32.K32GetProcessMemoryInfo(wintypes.HANDLE(process), ctypes.byref(memory), memory.size)
        return memory if found else None
