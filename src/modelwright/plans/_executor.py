"""Doing what a plan says, on this machine: independent nodes side by side, within its cores and its memory."""

from __future__ import annotations

import concurrent.futures
import contextvars
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

from modelwright.errors import WrightError
from modelwright.plans._forecast import History
from modelwright.plans._model import Model
from modelwright.plans._node import Node, Plan
from modelwright.plans._result import NodeResult, peek_node, run_node
from modelwright.plans._schedule import NodeSchedule
from modelwright.store import Store
from modelwright.targets import usable_cpus
from modelwright.vocabulary import OnProgress, Progress, silent
from modelwright.worker import Worker, memory_ceiling, sharing

AnyNode = Node[Any, Any]
# Where a stage never ran: its libraries, and weights held in several forms at a time.
_GUESS_BASE = 1 << 30
_GUESS_PER_BYTE = 6
_INTERRUPT_S = 0.1


class Executor(Protocol):
    """Runs every node of a plan that can be run, each after what it depends on, and yields what became of it.

    Results go through the store: what it has is not made again, also not after a kill. A node that fails takes with it
    what depends on it, and nothing else. Whoever stops iterating stops the work.
    """

    def run(self, plan: Plan, store: Store, on_progress: OnProgress | None = None) -> Iterator[NodeResult]: ...


class LocalExecutor:
    """Children of this process. `cores` and `memory` are what all of them together may use; by default, what there is.

    One node always runs, however much it needs. `on_progress` is called by one thread at a time.
    """

    def __init__(self, *, cores: int | None = None, memory: int | None = None) -> None:
        self._cores = cores
        self._memory = memory

    def run(self, plan: Plan, store: Store, on_progress: OnProgress | None = None) -> Iterator[NodeResult]:
        schedule, history = NodeSchedule(plan), History(store)
        with _Crew(store, self._cores or max(1, int(usable_cpus())), on_progress or silent) as crew:
            while not schedule.finished:
                ended = [result for node in schedule.ready() if (result := at_once(node, schedule, store)) is not None]
                if not ended:
                    self._start(schedule.ready(), schedule, crew, history)
                    ended = crew.wait()
                for result in ended:
                    schedule.let_go(result)
                # Whoever is free goes on before anybody looks at what has ended: that may take a while.
                able = (node for node in schedule.ready() if at_once(node, schedule, store) is None)
                self._start(list(able), schedule, crew, history)
                for result in ended:
                    schedule.tell(result)
                    yield result

    def _start(self, nodes: Sequence[AnyNode], schedule: NodeSchedule, crew: _Crew, history: History) -> None:
        """As many as there are cores and memory for, the first ones first."""
        ready = [(node, schedule.models(node)) for node in nodes]
        share = crew.share(len(ready))
        for node, models in ready:
            demand = _demand(history, node, models)
            if not crew.admits(demand, self._memory or memory_ceiling()):
                return
            schedule.begin(node)
            crew.start(node, models, share, demand)
        crew.prepare(schedule.next_ready(), self._memory or memory_ceiling())


def run_all(
    plan: Plan, store: Store, on_progress: OnProgress | None = None, executor: Executor | None = None
) -> dict[str, NodeResult]:
    """What became of every node, by its id."""
    return {result.node.id: result for result in (executor or LocalExecutor()).run(plan, store, on_progress)}


def at_once(node: AnyNode, schedule: NodeSchedule, store: Store) -> NodeResult | None:
    """A node that needs no child: it is left out, or in the store."""
    foregone = schedule.foregone(node)
    if foregone is not None:
        return foregone
    done = peek_node(store, node, schedule.models(node))
    return None if done is None else NodeResult(node, done)


def _demand(history: History, node: AnyNode, models: Mapping[str, Model]) -> int:
    size = node.size(models)
    known = history.forecast(node.stage.name, size)
    if known is not None and known.peak_rss_bytes is not None:
        return known.peak_rss_bytes
    return _GUESS_BASE + _GUESS_PER_BYTE * (size or 0)


class _Crew:
    """The threads that wait for children, and the warm children that are free. Leaving it ends every child."""

    def __init__(self, store: Store, cores: int, on_progress: OnProgress) -> None:
        self._store = store
        self._cores = cores
        self._on_progress = on_progress
        self._speaking = threading.Lock()
        self._threads = concurrent.futures.ThreadPoolExecutor(cores, thread_name_prefix="node")
        self._preparing = concurrent.futures.ThreadPoolExecutor(cores, thread_name_prefix="prepare")
        self._running: dict[concurrent.futures.Future[NodeResult], int] = {}
        self._ready: dict[Worker, concurrent.futures.Future[None]] = {}
        self._free: list[Worker] = []
        self._busy: set[Worker] = set()
        self._over = False

    def __enter__(self) -> _Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Children that are still at work are ended first: a call in a child cannot be waited for with ctrl-C."""
        self._over = True
        for threads in (self._threads, self._preparing):
            threads.shutdown(wait=False, cancel_futures=True)
        both: list[concurrent.futures.Future[Any]] = [*self._running, *self._ready.values()]
        left = {future for future in both if not future.done()}
        while left:
            for worker in (*self._busy, *self._free):
                worker.interrupt()
            left = concurrent.futures.wait(left, timeout=_INTERRUPT_S).not_done
        self._threads.shutdown()
        self._preparing.shutdown()
        for worker in self._free:
            worker.close()

    def share(self, ready: int) -> int | None:
        """How many CPUs each of the next ones has; None: all of them, nothing runs beside it."""
        beside = min(self._cores, len(self._running) + ready)
        return None if beside <= 1 else max(1, self._cores // beside)

    def admits(self, demand: int, memory: int) -> bool:
        """As many as there are cores, and as many more that wait for one: they begin without being told to."""
        held = sum(self._running.values())
        return not self._running or (len(self._running) < 2 * self._cores and held + demand <= memory)

    def start(self, node: AnyNode, models: Mapping[str, Model], share: int | None, demand: int) -> None:
        # What the user said about limits belongs to the context of the caller.
        context = contextvars.copy_context()
        waits = len(self._running) >= self._cores
        self._running[self._threads.submit(context.run, self._work, node, models, None if waits else (share,))] = demand

    def prepare(self, coming: Sequence[AnyNode], memory: int) -> None:
        """Children for nodes that will run side by side as soon as those at work end: cores that are free import what
        they need meanwhile."""
        able = [node.stage for node in coming if node.stage.imports and not (node.stage.alone or node.stage.last)]
        busy = min(len(self._running), self._cores)
        for number, stage in enumerate(able[busy + len(self._free) : self._cores], 1):
            if not self.admits(number * _GUESS_BASE, memory):
                return
            worker = Worker()
            self._free.append(worker)
            ready = self._preparing.submit(worker.get_ready, stage.task.call(), stage.imports, stage.patience_s)
            self._ready[worker] = ready

    def wait(self) -> list[NodeResult]:
        """What has ended, one node at least. An error that is no WrightError comes through."""
        done = concurrent.futures.wait(self._running, return_when=concurrent.futures.FIRST_COMPLETED).done
        for future in done:
            del self._running[future]
        return [future.result() for future in done]

    def _work(self, node: AnyNode, models: Mapping[str, Model], said: tuple[int | None] | None) -> NodeResult:
        """Of one that had to wait, what it shares the cores with is known when it begins."""
        (share,) = said if said is not None else (self.share(0),)
        worker = Worker() if node.stage.alone else self._warm()
        self._busy.add(worker)
        spent = node.stage.alone or node.stage.last
        try:
            with sharing(share):
                done = run_node(self._store, node, models, self._tell, worker)
            spent = node.stage.alone or (node.stage.last and node.stage.leaves(done.outcome))
            return NodeResult(node, done)
        except WrightError as error:
            return NodeResult(node, error=error)
        finally:
            self._busy.discard(worker)
            if spent:
                worker.close()
            else:
                self._free.append(worker)

    def _warm(self) -> Worker:
        try:
            worker = self._free.pop()
        except IndexError:
            return Worker()
        if worker in self._ready:
            concurrent.futures.wait([self._ready[worker]])
        return worker

    def _tell(self, progress: Progress) -> None:
        """Raises when nobody wants the work any more: whoever reports stops there."""
        with self._speaking:
            if self._over:
                raise _StoppedError
            self._on_progress(progress)


class _StoppedError(Exception):
    """The plan was given up."""
