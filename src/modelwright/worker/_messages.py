"""What parent, supervisor and runner say to each other."""

from __future__ import annotations

from typing import Literal

from modelwright._dataclass import dataclass
from modelwright.worker._payload import Payload
from modelwright.worker._result import Failure


@dataclass(frozen=True)
class Call:
    """Parent to runner: make this call within `timeout` seconds. `folder` is where it writes, if that is known.

    `cpus` is how many it should use, None for all there are.
    """

    number: int
    name: str
    root: str | None
    arguments: Payload
    folder: str | None
    timeout: float
    cpus: int | None = None


@dataclass(frozen=True)
class Advance:
    """Runner to parent: still at it."""

    number: int
    message: str
    fraction: float | None


@dataclass(frozen=True)
class Inside:
    """Runner to parent: what runs now is the user's own code, `what` (None: no longer), and how such code should be."""

    number: int
    what: str | None
    fix: str


@dataclass(frozen=True)
class Done:
    """Runner to parent: the call has ended. `error` is a pickled WrightError."""

    number: int
    value: Payload | None
    failure: Failure | None
    error: bytes | None
    cpu_s: float
    cpu_total_s: float
    peak_rss_bytes: int | None


@dataclass(frozen=True)
class Begin:
    """Parent to supervisor: a call starts; its output goes to `log`."""

    log: str
    memory_limit: int | None


@dataclass(frozen=True)
class End:
    """Parent to supervisor: the call has ended; answer with `Ended`."""


@dataclass(frozen=True)
class Ended:
    log_bytes: int


@dataclass(frozen=True)
class Look:
    """Parent to supervisor: is the tree doing anything? Answer with `Activity`."""


@dataclass(frozen=True)
class Activity:
    log_bytes: int
    cpu_s: float
    waits_for_cpu: bool = False


@dataclass(frozen=True)
class Kill:
    """Parent to supervisor: end the whole tree; answer with `Died`."""


@dataclass(frozen=True)
class Died:
    """Supervisor to parent: the runner and all it started are gone. `code` is as `subprocess` gives it.

    `held_bytes` is what the tree held when its memory limit was looked at last.
    """

    code: int | None
    killed_for: Literal["request", "memory_limit"] | None
    cpu_s: float | None
    peak_rss_bytes: int | None
    oom_evidence: str | None
    log_bytes: int
    survivors: int = 0
    held_bytes: int | None = None
