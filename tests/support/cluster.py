"""A cluster on loopback with real TLS: scheduler and workers in a thread of this process, each with its own store."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import dask

from modelwright.farm.cluster import STAGES, Cluster, make_certificates
from modelwright.farm.cluster._calls import give_hand
from modelwright.farm.cluster._guard import guarded
from modelwright.farm.cluster._hand import Hand, HandOptions
from modelwright.farm.cluster._serve import DASK, announced, worker_for
from modelwright.farm.cluster._tls import security
from modelwright.store import Store
from modelwright.testing import _executor_tasks as tasks

TEST_STAGES = {
    (one.name, one.version): one for one in (tasks.WRITE, tasks.WRITE_AGAIN, tasks.REFUSE, tasks.LAST, tasks.FLEETING)
}


class Loopback:
    """`workers` are targets by name: what each announces."""

    def __init__(self, folder: Path, workers: Mapping[str, tuple[str, ...]]) -> None:
        self.folder = folder
        make_certificates(folder / "tls", ("box",))
        self.tls = folder / "tls" / "box"
        self._rounds = itertools.count(1)
        self.hands = self._fresh(workers)
        self._workers: dict[str, Any] = {}
        self._targets = workers
        self._ready, self._end = threading.Event(), None
        self._error: BaseException | None = None
        self.address = ""

    def _fresh(self, names: Iterable[str]) -> dict[str, Hand]:
        home, stages = self.folder / str(next(self._rounds)), {**STAGES, **TEST_STAGES}
        return {name: Hand(Store(home / name / "store"), stages, HandOptions(name)) for name in names}

    def forget(self) -> None:
        """Every worker gets an empty store."""
        for hand in self.hands.values():
            hand.close()
        self.hands = self._fresh(self.hands)
        for name, worker in self._workers.items():
            give_hand(worker, self.hands[name])

    async def _serve(self) -> None:
        import distributed

        self._end = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        certificates = security(self.tls)
        async with contextlib.AsyncExitStack() as stack:
            scheduler = await stack.enter_async_context(
                distributed.Scheduler(
                    host="127.0.0.1", port=0, protocol="tls://", security=certificates, dashboard_address="127.0.0.1:0"
                )
            )
            self.address = scheduler.address
            for name, hand in self.hands.items():
                place = self.folder / name / "dask"
                resources = announced(self._targets[name], 1)
                served = worker_for(scheduler.address, certificates, hand, resources, place)
                self._workers[name] = await stack.enter_async_context(served)
            self._ready.set()
            await self._end.wait()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._error = error
            self._ready.set()

    def __enter__(self) -> Loopback:
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(guarded())
        self._stack.enter_context(dask.config.set({**DASK, "distributed.scheduler.worker-ttl": "10s"}))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait(60)
        if self._error is not None:
            raise self._error
        return self

    def __exit__(self, *_: Any) -> None:
        for hand in self.hands.values():
            hand.close()
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(60)
        self._stack.close()

    def lose(self, name: str) -> None:
        """The worker is gone from one moment to the next, in the middle of whatever it does."""
        closing = self._workers[name].close(timeout=0, executor_wait=False, reason="lost")
        asyncio.run_coroutine_threadsafe(closing, self._loop).result(30)

    @contextlib.contextmanager
    def connected(self) -> Iterator[Cluster]:
        with Cluster(self.address, tls=self.tls) as cluster:
            yield cluster
