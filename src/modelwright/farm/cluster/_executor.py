"""The same plan on the machines of a cluster. The driver keeps the store; machines come and go."""

from __future__ import annotations

import concurrent.futures
import contextlib
import contextvars
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from modelwright._typed import MisfitError, typed
from modelwright.errors import ExecutionError, WrightError
from modelwright.farm.cluster._cluster import SLOT, Cluster, LostWorkerError, checked, keep_content
from modelwright.farm.cluster._errand import Errand, Errands, OverError
from modelwright.farm.cluster._freight import Freight, make_job
from modelwright.farm.cluster._where import AnyNode, Berth, able, berth_for, nearest, needs_of
from modelwright.farm.cluster._wire import Delivery, NodeAnswer, NodeJob, forged, read, written
from modelwright.plans import (
    Model,
    ModelInput,
    NodeResult,
    NodeSchedule,
    NotKeptError,
    Plan,
    StageResult,
    at_once,
    made_once,
)
from modelwright.store import Produced, Store, check_names
from modelwright.vocabulary import OnProgress, Progress, silent, within

PATIENCE_S = 60.0
_ROLES = ("model", "companion")
_NOTES = {"outcome", "seconds", "cpu_seconds", "peak_rss_bytes", "input_bytes"}
_LOOK_S = 0.5
_AGAIN = 5
_THREADS = 256


class DaskExecutor:
    """Workers of a cluster. Nodes that only build go anywhere, those that ask an EP to workers that have it.

    A worker that dies loses its node, which runs again elsewhere. Where no worker can do a node, one is waited for
    `patience_s` seconds.
    """

    def __init__(self, cluster: Cluster, *, patience_s: float = PATIENCE_S) -> None:
        self._cluster = cluster
        self._patience_s = patience_s

    @property
    def slots(self) -> int:
        """How many nodes its machines run at once, as of now."""
        return sum(one.facts.slots for one in self._cluster.workers())

    def run(self, plan: Plan, store: Store, on_progress: OnProgress | None = None) -> Iterator[NodeResult]:
        schedule = NodeSchedule(plan)
        with _Dispatch(self._cluster, store, on_progress or silent, self._patience_s) as dispatch:
            while not schedule.finished:
                ended = [result for node in schedule.ready() if (result := at_once(node, schedule, store)) is not None]
                if not ended:
                    dispatch.start_all(schedule.ready(), schedule)
                    ended = dispatch.wait()
                for result in ended:
                    schedule.let_go(result)
                # Machines that are free go on before anybody looks at what has ended: that may take a while.
                able = (node for node in schedule.ready() if at_once(node, schedule, store) is None)
                dispatch.start_all(list(able), schedule)
                for result in ended:
                    schedule.tell(result)
                    yield result


class _Dispatch:
    """The threads that wait for machines. Leaving it gives up whatever is not done."""

    def __init__(self, cluster: Cluster, store: Store, on_progress: OnProgress, patience_s: float) -> None:
        self._cluster, self._store = cluster, store
        self._on_progress, self._patience_s = on_progress, patience_s
        self._errands = Errands(cluster)
        self._speaking = threading.Lock()
        self._threads = concurrent.futures.ThreadPoolExecutor(_THREADS, thread_name_prefix="errand")
        self._running: dict[concurrent.futures.Future[NodeResult], frozenset[str]] = {}
        self._known: set[str] = set()
        self._binding = threading.Lock()
        self._bound: Counter[str] = Counter()
        self._over = threading.Event()

    def __enter__(self) -> _Dispatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._errands.stop()
        self._threads.shutdown(cancel_futures=True)

    def start_all(self, nodes: Iterable[AnyNode], schedule: NodeSchedule) -> None:
        """Those that a machine is free for."""
        for node in nodes:
            if self.admits(node):
                schedule.begin(node)
                self.start(node, schedule.models(node))

    def admits(self, node: AnyNode) -> bool:
        """As many at once as the machines that can do it have slots; one waits where there is none."""
        needs = self._needs(node)
        slots = sum(int(one.resources[SLOT]) for one in able(self._cluster.workers(), needs))
        return Counter(self._running.values())[frozenset(needs)] < max(1, slots)

    def _needs(self, node: AnyNode) -> dict[str, float]:
        self._known.update(name for one in self._cluster.workers() for name in one.resources)
        return needs_of(node, self._known)

    def start(self, node: AnyNode, models: Mapping[str, Model]) -> None:
        context = contextvars.copy_context()
        future = self._threads.submit(context.run, self._work, node, models)
        self._running[future] = frozenset(self._needs(node))

    def wait(self) -> list[NodeResult]:
        """What has ended, one node at least. An error that is no WrightError comes through."""
        done = concurrent.futures.wait(self._running, return_when=concurrent.futures.FIRST_COMPLETED).done
        for future in done:
            del self._running[future]
        return [future.result() for future in done]

    def _work(self, node: AnyNode, models: Mapping[str, Model]) -> NodeResult:
        tell = within(self._tell, node.stage.name, node.label)
        made = _MadeThere()

        def produce(place: Path) -> Produced:
            return self._produce(node, models, place, tell, made)

        try:
            key = self._berth(node, models).key
            done: StageResult[Any] = made_once(self._store, node, key, produce, tell)
            fresh = done.produced and made.now
            return NodeResult(node, replace(done, produced=fresh, machine=made.by if fresh else None))
        except WrightError as error:
            return NodeResult(node, error=error)

    def _berth(self, node: AnyNode, models: Mapping[str, Model]) -> Berth:
        """Where it can be done; waits for a machine that comes, or comes back."""
        until = time.monotonic() + self._patience_s
        while isinstance(found := berth_for(node, models, self._cluster.workers(), self._needs(node)), ExecutionError):
            if time.monotonic() > until:
                raise found
            if self._over.wait(_LOOK_S):
                raise OverError
        return found

    def _produce(
        self, node: AnyNode, models: Mapping[str, Model], place: Path, tell: OnProgress, made: _MadeThere
    ) -> Produced:
        """Again elsewhere when a machine is gone with the result, or with the last one that could make it."""
        with contextlib.ExitStack() as stack:
            for model in models.values():
                if isinstance(model, ModelInput):
                    stack.enter_context(self._store.lease(model.artifact))
            for _ in range(_AGAIN):
                berth, freight = self._berth(node, models), Freight()
                number, topic = self._errands.number(), self._errands.topic
                job = make_job(node, models, freight, berth.key, number, topic)
                errand = Errand(number, written(job), {file.digest: file for file in job.files}, freight.path)
                try:
                    with self._going_to(berth, job) as places:
                        came = self._errands.run(errand, places, self._needs(node), tell)
                    checked(came.reply)
                    return self._received(node, berth, came, place, made)
                except LostWorkerError:
                    tell(Progress("its worker is gone: it is done again elsewhere"))
        raise ExecutionError(
            f"{node.stage.name} of {node.label} came to no end",
            cause=f"{_AGAIN} workers were lost while they had it",
            fix="look at the workers' logs: it may take their memory",
        )

    @contextlib.contextmanager
    def _going_to(self, berth: Berth, job: NodeJob) -> Iterator[list[str]]:
        """Where the job may go; one that is bound for a machine keeps others from being bound for it too."""
        lacking = {address: self._cluster.lacking(address, job.files) for address in berth.addresses}
        with self._binding:
            places = nearest(berth.workers, lacking, self._bound)
            self._bound.update(places if len(places) == 1 else ())
        try:
            yield places
        finally:
            with self._binding:
                self._bound.subtract(places if len(places) == 1 else ())

    def _received(self, node: AnyNode, berth: Berth, came: Delivery, place: Path, made: _MadeThere) -> Produced:
        """The result in this store's terms. Nothing enters it that does not follow from the node, or is not what its
        digest says."""
        address, answer = came.reply.worker, read(NodeAnswer, written(came.reply.answer))
        if answer.key != berth.key.digest or address not in berth.addresses:
            raise forged(f"the answer is about another {node.stage.name} than was asked for")
        _require_outcome(node, answer)
        made.now, made.by = answer.produced, berth.name_of(address)
        if not answer.kept:
            raise NotKeptError(answer.meta)
        check_names(file.name for file in answer.files)
        self._cluster.note_held(address, answer.files)
        reused = []
        for file in answer.files:
            if file.role not in _ROLES:
                raise forged(f"{file.name} has a role that no stage gives")
            if self._store.blob(file.digest, file.size) is not None:
                reused.append(file)
            elif file.digest in came.contents:
                keep_content(file, came.contents[file.digest], place / file.name)
            else:
                self._cluster.fetch(address, file, place / file.name)
        fetched = {file.name: file.role for file in answer.files if file not in reused}
        return Produced(fetched, answer.meta, tuple(reused))

    def _tell(self, progress: Progress) -> None:
        with self._speaking:
            if self._over.is_set():
                raise OverError
            self._on_progress(progress)


class _MadeThere:
    """Whether a machine really made it now, or had it; and which one it was."""

    now = True
    by: str | None = None


def _require_outcome(node: AnyNode, answer: NodeAnswer) -> None:
    """It must read as the outcome of this stage, and be worth keeping exactly where the stage says so."""
    try:
        if set(answer.meta) != _NOTES:
            raise ValueError("its notes are others than a stage's")
        outcome = typed(node.stage.outcome, answer.meta["outcome"])
        if node.stage.keeps(outcome) != answer.kept:
            raise ValueError("the stage says otherwise about keeping it")
    except (MisfitError, ValueError) as error:
        raise forged(f"the outcome of {node.stage.name}: {error}") from None
