"""Carrying out a matrix as one plan that grows: results go in, the next work comes out, everything is in the ledger."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright.errors import InputError, NoRoomError, StoreError, UsageError, WrightError
from modelwright.farm._budget import DiskBudget
from modelwright.farm._cells import CellGroup, MatrixCell
from modelwright.farm._job import CellJob, Made
from modelwright.farm._result import MatrixResult, MatrixTotals
from modelwright.farm._states import (
    AROUND,
    CellState,
    CellStatus,
    FolderTakenError,
    classify,
    facts_of_build,
    judged,
    told,
)
from modelwright.farm._upload import Upload, Uploads
from modelwright.farm.feeds import Feed, FeedError
from modelwright.pipeline import BuildResult, assemble
from modelwright.plans import Executor, Node, NodeResult, Plan
from modelwright.store import Artifact, Key, Ledger, Store
from modelwright.vocabulary import OnProgress, Progress

_BUILD = "build"
_WAIT_S = 1.0


@dataclass(frozen=True)
class MatrixWish:
    """What is wanted of a matrix. `retry` are the classes of failures that are tried again; `unjudged` lets builds be
    published that nobody could judge; `at_once` is how many sources are on their way at a time."""

    feed: Feed | None = None
    folder: Path | None = None
    disk: int | None = None
    unjudged: bool = False
    retry: tuple[str, ...] = ()
    at_once: int = 4


@dataclass
class _WorkDone:
    began: float = field(default_factory=time.monotonic)
    cpu: float = 0.0
    stages: Counter[str] = field(default_factory=Counter)
    seen: set[str] = field(default_factory=set)

    def add(self, result: NodeResult) -> None:
        done = result.done
        if done is not None and done.produced and result.node.id not in self.seen:
            self.seen.add(result.node.id)
            self.stages[done.stage] += 1
            self.cpu += done.cpu_seconds or 0.0


def statuses(cells: Iterable[MatrixCell], ledger: Ledger) -> dict[str, CellStatus]:
    """Every cell as the ledger has it."""
    found = {cell.id: cell for cell in cells}
    known = {event.item: told(found[event.item], event) for event in ledger.each_latest() if event.item in found}
    return {name: known.get(name) or CellStatus(cell) for name, cell in found.items()}


def is_settled(status: CellStatus, wish: MatrixWish) -> bool:
    """Is there nothing more to do for it, whatever the store still has?"""
    if status.state == "failed" and status.failure is not None:
        return status.failure.kind not in (*AROUND, *wish.retry)
    if wish.folder is not None or status.facts is None:
        return False
    if wish.feed is not None:
        if status.state == "built" and not wish.unjudged:
            return True
        return status.state == "published" and status.feed == wish.feed.address
    return status.state in ("validated", "built", "published")


class NeverFitsError(NoRoomError):
    """More than is allowed for everything: it would be the same with nothing beside it."""


class MatrixRun:
    """One run. `results` may be asked at any time; a killed run is gone on with by the next one."""

    def __init__(
        self, groups: Sequence[CellGroup], wish: MatrixWish, store: Store, executor: Executor, tell: OnProgress
    ) -> None:
        self._groups, self._wish, self._store, self._executor = groups, wish, store, executor
        self._say = tell
        self._ledger = store.ledger()
        self._now = statuses((cell for group in groups for cell in group.cells), self._ledger)
        self._queue: deque[CellGroup] = deque(groups)
        self._active: list[CellJob] = []
        self._budget = DiskBudget(store, wish.disk)
        self._uploads = None if wish.feed is None else Uploads(store, wish.feed)
        self._tally = _WorkDone()
        self._again: dict[int, CellGroup] = {}
        self._at_once = wish.at_once

    def run(self) -> MatrixResult:
        """Raises FeedError, with where it stood as `partial`, when the feed takes nothing any more."""
        try:
            self._work()
            if self._again and self._dead() is None:
                # Others may have taken the room that these wanted: once more, one at a time.
                self._queue, self._at_once = deque(self._again.values()), 1
                self._work()
            while self._uploads is not None and self._uploads.left and self._dead() is None:
                self._drain(wait=True)
        except KeyboardInterrupt as stop:
            stop.partial = self.result()  # type: ignore[attr-defined]
            raise
        finally:
            self._close()
        dead = self._dead()
        if dead is not None:
            dead.partial = self.result()  # type: ignore[attr-defined]
            raise dead
        return self.result()

    def result(self) -> MatrixResult:
        cells = tuple(self._now[cell.id] for group in self._groups for cell in group.cells)
        separate = sum(status.facts.bytes for status in cells if status.facts is not None)
        tally, wish = self._tally, self._wish
        totals = MatrixTotals(time.monotonic() - tally.began, tally.cpu, dict(tally.stages), separate)
        feed = None if wish.feed is None else wish.feed.address
        return MatrixResult(
            cells, feed, None if wish.folder is None else str(wish.folder), totals, self._budget.report()
        )

    def _dead(self) -> FeedError | None:
        return None if self._uploads is None else self._uploads.dead

    def _close(self) -> None:
        for job in self._active:
            job.close()
            self._ledger.release(cell.id for cell in job.cells)
        self._active.clear()
        if self._uploads is not None:
            self._uploads.close()
        self._ledger.close()

    # the plan

    def _work(self) -> None:
        while self._dead() is None:
            first = self._admit()
            if first:
                for _ in self._executor.run(Plan({"matrix": first}, self._after), self._store, self._tell):
                    if self._dead() is not None:
                        return
            elif not self._queue:
                return
            elif not self._drain(wait=True):  # what is on its way may make room; else somebody else has the cells
                time.sleep(_WAIT_S)

    def _after(self, result: NodeResult) -> tuple[Node[Any, Any], ...]:
        self._tally.add(result)
        self._budget.look()
        more: list[Node[Any, Any]] = []
        for job in [job for job in self._active if job.wants(result)]:
            more += job.after(result)
            if result.done is not None and result.done.produced:
                self._budget.used(job, result.done.artifact.size)
            self._settle(job)
        self._drain()
        return (*more, *self._admit())

    def _admit(self) -> tuple[Node[Any, Any], ...]:
        """The first work of the next sources, as many as may be on their way and as there is room for."""
        found: list[Node[Any, Any]] = []
        for _ in range(len(self._queue)):
            if len(self._active) >= self._at_once or self._dead() is not None:
                break
            group = self._queue.popleft()
            if self._leave_settled(group):
                continue
            begun = self._begin(group)
            if begun is None:
                self._queue.append(group)
                if self._active:
                    break
                continue
            found += begun
        return tuple(found)

    def _leave_settled(self, group: CellGroup) -> bool:
        return all(is_settled(self._now[cell.id], self._wish) for cell in group.cells)

    def _begin(self, group: CellGroup) -> list[Node[Any, Any]] | None:
        """None where it has to wait: somebody else is at it, or there is no room for it yet."""
        wanted = [n for n, cell in enumerate(group.cells) if not is_settled(self._now[cell.id], self._wish)]
        mine = [group.cells[number].id for number in wanted]
        taken = self._ledger.claim(mine)
        if taken:
            self._ledger.release(set(mine) - set(taken))
            self._say(Progress(f"{group.cells[0].model}: waiting for {next(iter(taken.values()))}, which builds it"))
            for cell in group.cells:
                self._now[cell.id] = told(cell, self._ledger.last(cell.id))
            return None
        wanted = [number for number in wanted if not self._made_before(group.cells[number])]
        job = CellJob(group, wanted, self._store, self._tell)
        if not wanted:
            self._ledger.release(mine)
            return []
        job.resolve()
        if job.recipes and not self._reserved(job, group):
            self._ledger.release(mine)
            return None
        self._active.append(job)
        self._note([self._leased(cell) for cell in job.cells], "leased")
        self._note([self._now[cell.id] for cell in job.cells], "building")
        nodes = job.begin()
        self._settle(job)
        return list(nodes)

    def _reserved(self, job: CellJob, group: CellGroup) -> bool:
        """One always runs, if what it needs is allowed at all: then the disk itself decides."""
        assert group.source is not None
        need = self._budget.need(group.source, list(job.recipes.values()))
        if self._budget.reserve(job, need, alone=not self._active):
            return True
        if self._active or (self._uploads is not None and self._uploads.left):
            return False
        error = NeverFitsError(
            f"{group.cells[0].model} does not fit",
            cause=f"its builds need about {need:,} bytes, and {self._wish.disk:,} are allowed for everything",
            fix="allow more with `disk`, or build it for fewer targets at a time",
        )
        job.refuse(error)
        return True

    def _leased(self, cell: MatrixCell) -> CellStatus:
        before = self._now[cell.id]
        return replace(before, attempt=before.attempt + 1, failure=None)

    # cells

    def _settle(self, job: CellJob) -> None:
        for cell, made in job.ended():
            self._ended(cell, made, job.group)
        if job.over:
            job.close()
            self._active.remove(job)
            self._budget.free(job)
            self._ledger.release(cell.id for cell in job.cells)

    def _ended(self, cell: MatrixCell, made: Made, group: CellGroup) -> None:
        try:
            if isinstance(made, WrightError):
                raise made
            self._built(cell, made)
        except WrightError as error:
            self._fail(cell, error)
            if self._now[cell.id].failure is not None and _failed_around(error) and self._at_once > 1:
                self._again[id(group)] = group

    def _built(self, cell: MatrixCell, made: BuildResult) -> None:
        artifact = assemble(made, self._store)
        facts = facts_of_build(made, artifact.key.digest, artifact.digest, artifact.size)
        status = self._set(replace(self._now[cell.id], facts=facts), "built")
        failure = judged(made)
        if failure is not None:
            self._set(replace(status, failure=failure), "failed")
            self._tell_of(cell)
            return
        if facts.gate:
            self._set(status, "validated")
        self._hand_over(cell, artifact)

    def _made_before(self, cell: MatrixCell) -> bool:
        """Was it built by an earlier run, and is it still here? Then it is only handed over."""
        status = self._now[cell.id]
        if status.facts is None or (status.state == "failed" and not _failed_later(status)):
            return False
        artifact = self._store.get(Key(status.facts.key, _BUILD))
        if artifact is None:
            return False
        try:
            self._hand_over(cell, artifact)
        except WrightError as error:
            self._fail(cell, error)
        return True

    def _hand_over(self, cell: MatrixCell, artifact: Artifact) -> None:
        """Into the folder, and on its way to the feed."""
        status, facts = self._now[cell.id], self._now[cell.id].facts
        assert facts is not None
        good: CellState = "validated" if facts.gate else "built"
        if self._wish.folder is not None:
            folder = self._wish.folder / cell.slug
            self._write(artifact, folder)
            state = "published" if status.state == "published" else good
            status = self._set(replace(status, folder=str(folder), failure=None), state)
        sent = status.state == "published" and self._uploads is not None and status.feed == self._uploads.feed.address
        if self._uploads is not None and not sent and (facts.gate or self._wish.unjudged):
            status = self._set(replace(status, failure=None), "uploading")
            self._uploads.send(status, artifact)
            return
        if status.state == "failed":
            self._set(replace(status, failure=None), good)
        self._tell_of(cell)

    def _write(self, artifact: Artifact, folder: Path) -> None:
        try:
            self._store.materialize(artifact, folder)
        except (InputError, UsageError) as error:
            raise FolderTakenError(error.problem, cause=error.cause, fix=error.fix) from error

    def _drain(self, *, wait: bool = False) -> int:
        found = [] if self._uploads is None else self._uploads.ended(wait=wait)
        for upload in found:
            self._uploaded(upload)
        return len(found)

    def _uploaded(self, upload: Upload) -> None:
        cell, done = upload.status.cell, upload.done
        if done is None:
            assert upload.error is not None
            self._fail(cell, upload.error)
            return
        self._set(replace(self._now[cell.id], feed=done.feed, reference=done.reference), "published")
        self._tell_of(cell)

    def _fail(self, cell: MatrixCell, error: WrightError) -> None:
        self._set(replace(self._now[cell.id], failure=classify(error)), "failed")
        self._tell_of(cell)

    def _set(self, status: CellStatus, state: CellState) -> CellStatus:
        (found,) = self._note([status], state)
        return found

    def _note(self, changed: Sequence[CellStatus], state: CellState) -> list[CellStatus]:
        found = [replace(status, state=state, at=time.time()) for status in changed]
        self._ledger.append_all((status.cell.id, state, status.note) for status in found)
        self._now.update((status.cell.id, status) for status in found)
        return found

    def _tell_of(self, cell: MatrixCell) -> None:
        status = self._now[cell.id]
        why = "" if status.failure is None else f": {status.failure.problem} ({status.failure.cause})"
        self._say(Progress(f"{cell.model} for {cell.target}: {status.words}{why}"))

    def _tell(self, progress: Progress) -> None:
        self._budget.look()
        self._say(progress)


def _failed_around(error: WrightError) -> bool:
    """Not by the model: room that others had, or a result that went before it was held."""
    return isinstance(error, StoreError) and not isinstance(error, FeedError | NeverFitsError)


def _failed_later(status: CellStatus) -> bool:
    """The build is good, and what came after it failed."""
    return status.failure is not None and status.failure.kind in AROUND
