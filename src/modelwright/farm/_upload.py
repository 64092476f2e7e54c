"""Publishing beside the building, and giving up where the feed as a whole does not take anything any more."""

from __future__ import annotations

import concurrent.futures
import contextlib
import contextvars

from modelwright._dataclass import dataclass
from modelwright._scratch import scratch
from modelwright.errors import WrightError
from modelwright.farm._states import CellStatus
from modelwright.farm.feeds import Feed, FeedError, Package, PublishResult, publish
from modelwright.store import Artifact, Store

_AT_ONCE = 2
_ENOUGH = 3
"""So many packages in a row that meet a fault of the whole feed: the next would meet it too."""


@dataclass(frozen=True)
class Upload:
    """What became of one package."""

    status: CellStatus
    done: PublishResult | None = None
    error: WrightError | None = None


class Uploads:
    """Packages on their way. What is on its way is held in the store until the feed has confirmed every digest."""

    def __init__(self, store: Store, feed: Feed) -> None:
        self._store, self.feed = store, feed
        self._threads = concurrent.futures.ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="upload")
        self._running: dict[concurrent.futures.Future[Upload], contextlib.ExitStack] = {}
        self._in_a_row = 0
        self.dead: FeedError | None = None

    def send(self, status: CellStatus, artifact: Artifact) -> None:
        held = contextlib.ExitStack()
        held.enter_context(self._store.lease(artifact))
        context = contextvars.copy_context()
        self._running[self._threads.submit(context.run, self._publish, status, artifact)] = held

    def ended(self, *, wait: bool = False) -> list[Upload]:
        """Those that are over; with `wait`, one at least where any is on its way."""
        if not self._running:
            return []
        until = None if wait else 0
        done = concurrent.futures.wait(self._running, until, concurrent.futures.FIRST_COMPLETED).done
        found = []
        for future in done:
            self._running.pop(future).close()
            found.append(future.result())
        for upload in found:
            self._count(upload.error)
        return found

    @property
    def left(self) -> int:
        return len(self._running)

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
        for held in self._running.values():
            held.close()
        self._running.clear()

    def _count(self, error: WrightError | None) -> None:
        if isinstance(error, FeedError) and error.stops_all:
            self._in_a_row += 1
            if self._in_a_row >= _ENOUGH:
                self.dead = error
        else:
            self._in_a_row = 0

    def _publish(self, status: CellStatus, artifact: Artifact) -> Upload:
        facts, cell = status.facts, status.cell
        assert facts is not None, "only what is built is published"
        try:
            with scratch("upload", self._store.root.parent / "scratch") as place:
                folder = self._store.materialize(artifact, place / "build", link=True)
                return Upload(status, publish(self.feed, folder, Package(cell.model, cell.target, facts.precision)))
        except WrightError as error:
            return Upload(status, error=error)
