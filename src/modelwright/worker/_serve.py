"""The start of a child: split into supervisor and runner before anything heavy is imported."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

from modelwright._dataclass import dataclass
from modelwright.worker._channel import Channel
from modelwright.worker._payload import Scratch
from modelwright.worker._runner import serve_calls

if sys.platform != "win32":
    import resource

    from modelwright.worker._supervisor import Supervisor

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# The kernel should take the runner before the user's own process.
_OOM_SCORE = "500"


@dataclass(frozen=True)
class ChildPlan:
    """What a child is told on its command line. `control` and `data` are inherited file descriptors."""

    parent: int
    token: str
    scratch: tuple[str, ...]
    control: int = -1
    data: int = -1


def serve(plan: ChildPlan) -> None:
    """Be a child. Returns when there is nothing left to do."""
    if sys.platform == "win32":
        _serve_windows(plan)
    else:
        _serve_posix(plan)


if sys.platform == "win32":

    def _serve_windows(plan: ChildPlan) -> None:
        """The parent supervises from outside, through a job object; the socket arrives on stdin."""
        channel = Channel(socket.fromshare(sys.stdin.buffer.read()), bytes.fromhex(plan.token))
        serve_calls(channel, Scratch(plan.scratch), os.dup(2))

else:

    def _serve_posix(plan: ChildPlan) -> None:
        output, printed = os.pipe()
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        supervisor = os.getpid()
        runner = os.fork()
        if runner == 0:
            for unused in (plan.control, output):
                os.close(unused)
            _become_runner(plan, supervisor, printed)
        for unused in (plan.data, printed):
            os.close(unused)
        control = Channel(socket.socket(fileno=plan.control), bytes.fromhex(plan.token))
        Supervisor(control, output, runner, plan.parent).watch(Scratch(plan.scratch))
        os._exit(0)

    def _become_runner(plan: ChildPlan, supervisor: int, printed: int) -> NoReturn:
        """Everything the runner prints goes to the supervisor; when the supervisor goes, it goes."""
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(1)
        os.setpgid(0, 0)
        os.set_inheritable(plan.data, False)
        for target in (1, 2):
            os.dup2(printed, target)
        _settle(printed)
        channel = Channel(socket.socket(fileno=plan.data), bytes.fromhex(plan.token))
        serve_calls(channel, Scratch(plan.scratch), printed)
        # The parent is gone: no teardown, native libraries are known to hang in theirs.
        os._exit(0)

    def _settle(stacks: int) -> None:
        """Whoever asks gets the Python stack; a crash leaves no core file in the user's folder."""
        faulthandler.register(signal.SIGUSR1, stacks, all_threads=True)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
