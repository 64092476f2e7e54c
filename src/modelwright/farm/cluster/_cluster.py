"""A driver's side of the cluster: which machines there are, and files to and from them."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import ExecutionError, StoreError
from modelwright.farm.cluster import _calls as calls
from modelwright.farm.cluster._dask import DASK
from modelwright.farm.cluster._guard import guarded
from modelwright.farm.cluster._tls import require_tls, security, tls_folder
from modelwright.farm.cluster._wire import CHUNK, Reply, Report, WorkerFacts, forged, read, written
from modelwright.store import FileEntry

if TYPE_CHECKING:
    import dask
    import distributed
else:
    dask = lazy("dask")
    distributed = lazy("distributed")

SLOT = "slot"
DEVICE = "device:"
_FRESH_S = 1.0
_CONNECT_S = 20.0


class LostWorkerError(Exception):
    """The machine is gone, or does not answer."""


@dataclass(frozen=True)
class ClusterWorker:
    """A machine of the cluster: what it announced, and what it is."""

    address: str
    resources: Mapping[str, float]
    facts: WorkerFacts

    @property
    def name(self) -> str:
        return self.facts.name

    def has_device(self, word: str) -> bool:
        """May a target, without its chip, be measured there?"""
        return DEVICE + word in self.resources


class Cluster:
    """A connection to the scheduler at `tls://…`. Safe for many threads."""

    def __init__(self, scheduler: str, *, tls: Path | None = None) -> None:
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(guarded())
        self._stack.enter_context(dask.config.set(DASK))
        self._lock = threading.Lock()
        self._known: dict[str, WorkerFacts] = {}
        self._workers: tuple[ClusterWorker, ...] = ()
        self._looked = 0.0
        self._sending: dict[tuple[str, str], threading.Lock] = {}
        self._sent: dict[tuple[str, str], float] = {}
        self._held: dict[str, set[str]] = {}
        self.id = f"wright-{os.urandom(8).hex()}"
        try:
            self.client = self._stack.enter_context(_connected(require_tls(scheduler), tls_folder(tls)))
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def workers(self, *, fresh: bool = False) -> tuple[ClusterWorker, ...]:
        """The machines that are there now, as of the last second."""
        with self._lock:
            if fresh or time.monotonic() - self._looked > _FRESH_S:
                self._workers = tuple(self._look())
                self._looked = time.monotonic()
            return self._workers

    def _look(self) -> list[ClusterWorker]:
        there = self._asked(self.client.scheduler_info, n_workers=-1)["workers"]
        ours = {address: found for address, found in there.items() if SLOT in found["resources"]}
        for address in ours.keys() - self._known.keys():
            with contextlib.suppress(LostWorkerError):
                self._known[address] = read(WorkerFacts, self.call(address, calls.tell_facts, True))
        self._known = {address: facts for address, facts in self._known.items() if address in ours}
        return [ClusterWorker(address, ours[address]["resources"], facts) for address, facts in self._known.items()]

    def call(self, address: str, function: Callable[..., Any], *args: Any) -> Any:
        """One of `calls` on one machine."""
        try:
            return self._asked(self.client.run, function, *args, workers=[address])[address]
        except KeyError:
            raise LostWorkerError(address) from None

    def _asked(self, ask: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return ask(*args, **kwargs)
        except (OSError, TimeoutError) as error:
            if self.client.status != "running":
                raise _no_scheduler(str(error)) from None
            raise LostWorkerError(str(error)) from None

    def send(self, address: str, file: FileEntry, path: Path) -> None:
        """Content to a machine that lacks it, piece by piece; once where several ask for it at a time. A machine that
        asks again has lost it since then: its word counts, not what was sent."""
        place, asked = (address, file.digest), time.monotonic()
        with self._lock:
            turn = self._sending.setdefault(place, threading.Lock())
        with turn:
            if self._sent.get(place, -math.inf) >= asked:
                return
            with path.open("rb") as stream:
                offset = 0
                while offset == 0 or offset < file.size:
                    data = stream.read(CHUNK)
                    if not data and file.size:
                        raise StoreError(
                            f"{path.name} became shorter while it was sent",
                            cause=f"{offset} of {file.size} bytes are left",
                            fix="leave the file alone while it is worked on",
                        )
                    answer = self.call(address, calls.put_piece, self.id, written(file), offset, data)
                    checked(read(Reply, answer))
                    offset += max(1, len(data))
            self._sent[place] = time.monotonic()
            self.note_held(address, [file])

    def fetch(self, address: str, file: FileEntry, path: Path) -> None:
        """A file of a machine's store; anything but the content it is called after is refused and removed."""
        total, offset = hashlib.sha256(), 0
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as stream:
            while offset < file.size:
                data = self.call(address, calls.get_piece, written(file), offset)
                if isinstance(data, str):
                    checked(read(Reply, data))
                if not isinstance(data, bytes) or not data or offset + len(data) > file.size:
                    break
                total.update(data)
                stream.write(data)
                offset += len(data)
        if offset != file.size or total.hexdigest() != file.digest:
            path.unlink()
            raise forged(f"{file.name} is not what its digest says")

    def note_held(self, address: str, files: Iterable[FileEntry]) -> None:
        """A machine has these: it made them, or was sent them."""
        with self._lock:
            self._held.setdefault(address, set()).update(file.digest for file in files)

    def lacking(self, address: str, files: Iterable[FileEntry]) -> int:
        """Bytes of them that would have to be sent there, as far as is known here."""
        with self._lock:
            held = self._held.get(address, set())
            return sum(file.size for file in files if file.digest not in held)

    def listen(self, topic: str, hear: Callable[[Report], None]) -> None:
        def heard(event: Any) -> None:
            with contextlib.suppress(ExecutionError):  # what is no report says nothing
                hear(read(Report, event[1]))

        self.client.subscribe_topic(topic, heard)


def keep_content(file: FileEntry, data: bytes, path: Path) -> None:
    """A file that came along; anything but the content it is called after is refused."""
    if len(data) != file.size or hashlib.sha256(data).hexdigest() != file.digest:
        raise forged(f"{file.name} is not what its digest says")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def checked(reply: Reply) -> Reply:
    """Raises the error that came."""
    if reply.error is not None:
        raise reply.error.error()
    return reply


def _connected(address: str, folder: Path) -> Any:
    try:
        return distributed.Client(
            address, security=security(folder), timeout=_CONNECT_S, set_as_default=False, name="wright"
        )
    except (OSError, TimeoutError) as error:
        raise _no_scheduler(str(error)) from None


def _no_scheduler(why: str) -> StoreError:
    return StoreError(
        "the cluster's scheduler cannot be reached",
        cause=why or "no answer",
        fix="look whether `wright cluster scheduler` runs there, with certificates of the same authority",
    )
