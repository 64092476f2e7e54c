"""Busy for a while, idle for a while, both at random: the neighbour nobody wants."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_NEIGHBOUR = """
import random, time
draw = random.Random(1)
while True:
    end = time.perf_counter() + draw.uniform(0.02, 1.0)
    while time.perf_counter() < end:
        sum(range(1000))
    time.sleep(draw.uniform(0.02, 1.0))
"""


@contextmanager
def neighbour(*, busy: bool = True) -> Iterator[None]:
    """One process beside the measurement, or none."""
    if not busy:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", _NEIGHBOUR])
    try:
        yield
    finally:
        process.kill()
        process.wait()
