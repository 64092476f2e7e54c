"""One CPU for a simulator and all of its threads.

Qualcomm's computes everything in the thread that asks; its eight others call `sched_yield` until it is done. Where they
have a CPU to do that on, they take 60 % of all CPU time and slow the first one down; on the same CPU they give way.

Imported by foreign interpreters too, so: standard library only.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import sys
import threading
from collections.abc import Callable

if sys.platform == "linux":

    def keep_to_one_cpu() -> Callable[[], None]:
        """From now on this thread and those that it starts have one CPU. Call what comes back to have all again."""
        thread, before = threading.get_native_id(), frozenset(os.sched_getaffinity(0))
        if len(before) == 1:
            return lambda: None
        os.sched_setaffinity(thread, {_chosen(before)})

        def give_back() -> None:
            # The thread may be gone.
            with contextlib.suppress(OSError):
                os.sched_setaffinity(thread, before)

        return give_back

    @functools.cache
    def _chosen(cpus: frozenset[int]) -> int:
        """Always the same one in a process, because a simulator's threads stay when its session is closed; and one that
        no other process has. Where there are more simulators than CPUs, they share."""
        ordered = sorted(cpus, reverse=True)
        return next(filter(_claim, ordered), ordered[os.getpid() % len(ordered)])

    def _claim(cpu: int) -> bool:
        """By a name that only one socket can bear: it is free again whichever way the process ends."""
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0modelwright simulator on cpu {cpu}")
        except OSError:
            claim.close()
            return False
        claim.detach()
        return True

else:

    def keep_to_one_cpu() -> Callable[[], None]:
        """Simulators exist on Linux."""
        return lambda: None
