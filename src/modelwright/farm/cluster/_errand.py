"""One job on one machine, seen from the driver: it is submitted, gets the files it lacks, reports, and answers."""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import ExecutionError
from modelwright.farm.cluster import _calls as calls
from modelwright.farm.cluster._cluster import Cluster, LostWorkerError
from modelwright.farm.cluster._wire import Delivery, Reply, Report, read
from modelwright.store import FileEntry
from modelwright.vocabulary import OnProgress, Progress

if TYPE_CHECKING:
    import distributed
    from distributed import scheduler as distributed_scheduler
else:
    distributed = lazy("distributed")
    distributed_scheduler = lazy("distributed.scheduler")

_LOOK_S = 1.0


class OverError(Exception):
    """Nobody wants the work any more."""


_Inbox = queue.Queue[Report | type[OverError] | None]
"""None is the end, OverError that nobody waits for it any more."""


@dataclass(frozen=True, eq=False)
class Errand:
    """`text` is for the function `call`; `files` is all content it may ask for, which lies at `path`."""

    id: str
    text: str
    files: Mapping[str, FileEntry]
    path: Callable[[str], Path | None]
    call: Callable[[str], Any] = calls.run_job


class Errands:
    """All jobs of one driver: what machines report arrives at the job it is about. Safe for many threads."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._inboxes: dict[str, _Inbox] = {}
        self._numbers = itertools.count(1)
        self._over = False
        self.topic = f"{cluster.id}-{os.urandom(4).hex()}"
        cluster.listen(self.topic, self._hear)

    def number(self) -> str:
        return f"{self.topic}-{next(self._numbers)}"

    def _hear(self, report: Report) -> None:
        inbox = self._inboxes.get(report.job)
        if inbox is not None:
            inbox.put(report)

    def stop(self) -> None:
        """Every job ends with OverError."""
        self._over = True
        for inbox in tuple(self._inboxes.values()):
            inbox.put(OverError)

    def run(self, errand: Errand, places: list[str], needs: Mapping[str, float], tell: OnProgress) -> Delivery:
        """What a machine answered. LostWorkerError when all that could do it are gone."""
        inbox = self._inboxes[errand.id] = queue.Queue()
        future = self._cluster.client.submit(
            errand.call, errand.text, key=errand.id, workers=places, resources=dict(needs), pure=False
        )
        future.add_done_callback(lambda _: inbox.put(None))
        try:
            if self._over:
                raise OverError
            self._attend(errand, places, inbox, tell)
            return _answer(future)
        except BaseException:
            self._give_up(errand.id, places, future)
            raise
        finally:
            del self._inboxes[errand.id]
            future.release()

    def _attend(self, errand: Errand, places: Iterable[str], inbox: _Inbox, tell: OnProgress) -> None:
        while True:
            try:
                report = inbox.get(timeout=_LOOK_S)
            except queue.Empty:
                there = {worker.address for worker in self._cluster.workers()}
                if there.isdisjoint(places):
                    raise LostWorkerError("all of them") from None
                continue
            if report is None:
                return
            if not isinstance(report, Report):
                raise OverError
            self._serve(errand, report, tell)

    def _serve(self, errand: Errand, report: Report, tell: OnProgress) -> None:
        if report.message is not None:
            tell(Progress(report.message, report.fraction, report.stage, report.label))
        for digest in report.lacks:
            file, path = errand.files.get(digest), errand.path(digest)
            if file is not None and path is not None:
                with contextlib.suppress(LostWorkerError):  # then it is done elsewhere, which asks again
                    self._cluster.send(report.worker, file, path)

    def _give_up(self, job: str, places: Iterable[str], future: Any) -> None:
        future.cancel()
        there = {worker.address for worker in self._cluster.workers()}
        for address in there.intersection(places):
            with contextlib.suppress(LostWorkerError):
                self._cluster.call(address, calls.stop_job, job)


def _answer(future: Any) -> Delivery:
    try:
        found = future.result()
        text, contents = found if isinstance(found, tuple | list) and len(found) == 2 else (found, {})
        known = contents.items() if isinstance(contents, dict) else ()
        return Delivery(read(Reply, text), {name: data for name, data in known if isinstance(data, bytes)})
    except distributed_scheduler.KilledWorker as error:
        raise ExecutionError(
            "the workers that did it died",
            cause=str(error).splitlines()[0],
            fix="look at their logs: it may take their memory, or end their process",
        ) from None
    except (OSError, TimeoutError, distributed.client.FutureCancelledError) as error:
        raise LostWorkerError(str(error)) from None
