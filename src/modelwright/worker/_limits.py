"""What a call in a child may use: time, memory, and how long it may stand still. The user's word goes first."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import UsageError
from modelwright.worker._oom import group_ceilings

if TYPE_CHECKING:
    import psutil
else:
    psutil = lazy("psutil")

# A child that waits for a disk or a device moves a little in ten minutes; one that was stopped does not.
STALL_S = 600.0
# An hour for each GiB: compilers and exporters of large models are slow, and nobody waits that long for a small one.
_S_PER_BYTE = 3600.0 / (1 << 30)
# The libraries, and activations that a small file may have; then weights, held in several forms at a time.
_MEMORY_BASE = 4 << 30
_MEMORY_PER_BYTE = 16
_MACHINE_SHARE = 0.8


@dataclass(frozen=True)
class Limits:
    """`timeout` counts from the last report of progress, or from the start when it is for the `whole` call."""

    timeout: float
    stall: float | None = None
    memory: int | None = None
    whole: bool = False


@dataclass(frozen=True)
class _Said:
    timeout: float | None = None
    memory: int | None = None


_said: ContextVar[_Said | None] = ContextVar("limits the user set", default=None)


@contextlib.contextmanager
def limited(*, timeout: float | None = None, memory: int | None = None) -> Iterator[None]:
    """Every call in a child made inside takes at most so many seconds and bytes; None leaves the default."""
    for name, value in (("timeout", timeout), ("memory", memory)):
        if value is not None and not (value > 0 and math.isfinite(value)):
            raise UsageError(
                f"{value} is no limit for {name}",
                cause="a limit is a positive number",
                fix="`memory` 8GB, `timeout` 30m",
            )
    before = _said.set(_Said(timeout, memory))
    try:
        yield
    finally:
        _said.reset(before)


def said_limits() -> tuple[float | None, int | None]:
    """Seconds and bytes as `limited` was told, for a call on another machine."""
    said = _said.get() or _Said()
    return said.timeout, said.memory


_shared: ContextVar[int | None] = ContextVar("CPUs of this call", default=None)


@contextlib.contextmanager
def sharing(cpus: int | None) -> Iterator[None]:
    """Calls in a child made inside use so many CPUs: others work beside them."""
    before = _shared.set(cpus)
    try:
        yield
    finally:
        _shared.reset(before)


def shared_cpus() -> int | None:
    return _shared.get()


def resolve_limits(timeout: float, planned: float, stall: float | None, memory: int | None, size: int | None) -> Limits:
    """What the user said; else the caller's limits, with more time and less memory for a model of `size` bytes."""
    said = _said.get() or _Said()
    if said.timeout is not None:
        whole, seconds = True, said.timeout + planned
    else:
        whole, seconds = False, timeout + planned + (size or 0) * _S_PER_BYTE
    return Limits(seconds, stall, said.memory or memory or default_memory(size), whole)


def memory_ceiling() -> int:
    """What anything may hold here: what the user said, else the share of the machine."""
    said = _said.get() or _Said()
    return said.memory or machine_share()


def default_memory(size: int | None) -> int:
    """For work on so many bytes, and never so much that the machine has nothing left."""
    share = machine_share()
    return share if size is None else min(share, _MEMORY_BASE + _MEMORY_PER_BYTE * size)


@functools.cache
def machine_share() -> int:
    """Of what the machine or the container has, which others use too."""
    return int(_MACHINE_SHARE * min([psutil.virtual_memory().total, *group_ceilings()]))
