"""Measuring the finished cells of a matrix, by the verbs that anybody measures with: here, or on workers that can."""

from __future__ import annotations

import concurrent.futures
import contextlib
import contextvars
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from modelwright import pipeline
from modelwright._dataclass import dataclass
from modelwright._scratch import scratch
from modelwright.api._accuracy import reference_of
from modelwright.api._places import CPU, MeasuringPlace, Places
from modelwright.api.evaluate import evaluate
from modelwright.api.perf import perf
from modelwright.errors import InputError, StoreError, WrightError
from modelwright.farm import (
    CellAccuracy,
    CellGroup,
    CellPerf,
    CellStatus,
    MatrixResult,
    PartTime,
    accuracy_of,
    time_of,
)
from modelwright.farm.feeds import Feed, PackageQuery, pull
from modelwright.models import BuildSource, read_build
from modelwright.store import Key, Ledger, Store
from modelwright.vocabulary import Data, On, OnProgress, Progress

_GOOD = ("validated", "published", "built")
_BUILD = "build"
_GONE = "allow more with `disk`, or give an `output` or a feed"
_NO_TASK = "nothing says how its rows are scored: give its row a task"
_SIMULATED = "it is only simulated: right answers, and timings that mean nothing"


@dataclass(frozen=True)
class MeasuringWish:
    """What to measure. `feed` has builds that are not here any more; `scheduler` is where `places` are."""

    perf: bool
    evaluate: bool
    places: Places
    feed: Feed | None = None
    scheduler: str | None = None
    tls: Path | None = None


@dataclass(frozen=True)
class _Task:
    """One measurement of a cell. `subject` is how it is judged, for an evaluation; without one it is timed."""

    cell: str
    place: MeasuringPlace
    target: str
    subject: _Subject | None = None


@dataclass(frozen=True, eq=False)
class _Subject:
    """All cells of a model are judged on the same rows: those that found nobody's ranges."""

    reference: str
    data: Data
    after: int
    task: str | None


class Measuring:
    """What is measured is in the ledger at once: a run that is killed goes on behind it."""

    def __init__(
        self, groups: Sequence[CellGroup], found: MatrixResult, wish: MeasuringWish, store: Store, tell: OnProgress
    ) -> None:
        self._groups, self._wish, self._store, self._tell = groups, wish, store, tell
        self._found = found
        self._now = {status.cell.id: status for status in found.cells}
        self._ledger: Ledger = store.ledger()
        self._lock = threading.Lock()

    def run(self) -> MatrixResult:
        """Every cell that is built; one measurement at a time on each machine."""
        try:
            tasks: dict[str | None, list[_Task]] = defaultdict(list)
            for task in [*self._timings(), *self._evaluations()]:
                tasks[task.place.machine].append(task)
            self._all(tasks)
        except KeyboardInterrupt as stop:
            stop.partial = self.result()  # type: ignore[attr-defined]
            raise
        finally:
            self._ledger.close()
        return self.result()

    def result(self) -> MatrixResult:
        return replace(self._found, cells=tuple(self._now[status.cell.id] for status in self._found.cells))

    # what there is to do

    def _timings(self) -> list[_Task]:
        tasks, none = [], []
        for status in self._built() if self._wish.perf else ():
            assert status.facts is not None
            place, known = self._wish.places(status.cell.target), status.perf
            if known is not None and known.digest == status.facts.digest and known.records:
                continue
            if isinstance(place, str) or place.simulated:
                why = place if isinstance(place, str) else _SIMULATED
                none.append(replace(status, perf=CellPerf(status.facts.digest, reason=why)))
                continue
            tasks.append(_Task(status.cell.id, place, status.cell.target))
        self._note(none)
        return tasks

    def _evaluations(self) -> list[_Task]:
        tasks, none = [], []
        for group in self._groups if self._wish.evaluate else ():
            wanted = [number for number, cell in enumerate(group.cells) if self._unjudged(self._now[cell.id])]
            subjects = _subjects(group, wanted)
            for number in wanted:
                status = self._now[group.cells[number].id]
                assert status.facts is not None
                where = self._judging_place(status) if subjects[number].task is not None else _NO_TASK
                if isinstance(where, str):
                    none.append(replace(status, accuracy=CellAccuracy(status.facts.digest, reason=where)))
                else:
                    tasks.append(_Task(status.cell.id, *where, subjects[number]))
        self._note(none)
        return tasks

    def _built(self) -> list[CellStatus]:
        return [one for one in self._now.values() if one.state in _GOOD and one.facts is not None]

    def _unjudged(self, status: CellStatus) -> bool:
        if status.state not in _GOOD or status.facts is None:
            return False
        known = status.accuracy
        return known is None or known.digest != status.facts.digest or known.record is None

    def _judging_place(self, status: CellStatus) -> tuple[MeasuringPlace, str] | str:
        """The device itself; the CPU, which computes what the file says, where nobody has it. What is compiled runs
        nowhere but on its target."""
        assert status.facts is not None
        target = status.cell.target
        there = self._wish.places(target)
        if not isinstance(there, str) and (not there.simulated or status.facts.compiled):
            return there, target
        if status.facts.compiled:
            return str(there)
        cpu = self._wish.places(CPU)
        return cpu if isinstance(cpu, str) else (cpu, CPU)

    # doing it

    def _all(self, tasks: dict[str | None, list[_Task]]) -> None:
        """Machines side by side, on each one after the other."""
        count = sum(map(len, tasks.values()))
        if count:
            self._tell(Progress(f"measuring: {count} to do on {len(tasks)} machine{'s' if len(tasks) > 1 else ''}"))
        if len(tasks) <= 1:
            for task in (task for some in tasks.values() for task in some):
                self._one(task)
            return
        with concurrent.futures.ThreadPoolExecutor(len(tasks), thread_name_prefix="measure") as threads:
            running = [threads.submit(contextvars.copy_context().run, self._each, some) for some in tasks.values()]
            for future in running:
                future.result()

    def _each(self, tasks: list[_Task]) -> None:
        for task in tasks:
            self._one(task)

    def _one(self, task: _Task) -> None:
        status = self._now[task.cell]
        if self._ledger.claim([task.cell]):
            self._say(f"{status.cell.model} for {status.cell.target}: another process is at it")
            return
        what = "timed" if task.subject is None else "evaluated"
        self._say(f"{status.cell.model} for {status.cell.target} is {what} on {task.place.machine or 'this machine'}")
        try:
            self._note([self._measured(status, task)])
        finally:
            self._ledger.release([task.cell])

    def _measured(self, status: CellStatus, task: _Task) -> CellStatus:
        """What keeps one from being measured is said of it, and keeps no other."""
        assert status.facts is not None
        why = (status.facts.digest, task.place.machine)
        try:
            with self._folder(status) as folder:
                build = BuildSource(str(folder), name=status.cell.model)
                if task.subject is None:
                    return replace(status, perf=self._timed(task, build, *why))
                return replace(status, accuracy=self._judged(task, task.subject, build, status.facts.digest))
        except StoreError:
            raise
        except WrightError as error:
            reason = f"{error.problem}: {error.cause}"
            if task.subject is None:
                return replace(status, perf=CellPerf(*why, reason=reason))
            unknown = CellAccuracy(status.facts.digest, target=task.target, machine=task.place.machine, reason=reason)
            return replace(status, accuracy=unknown)

    def _timed(self, task: _Task, build: BuildSource, digest: str, machine: str | None) -> CellPerf:
        parts = read_build(Path(build.folder)).parts
        times = tuple(self._part(task, build, part.name, several=len(parts) > 1) for part in parts)
        return CellPerf(digest, machine, times)

    def _part(self, task: _Task, build: BuildSource, part: str, *, several: bool) -> PartTime:
        found = perf(
            build,
            task.target,
            component=part if several else None,
            on=self._on(task),
            store=self._store,
            on_progress=self._speak,
        )
        return time_of(part, found)

    def _judged(self, task: _Task, about: _Subject, build: BuildSource, digest: str) -> CellAccuracy:
        found = evaluate(
            build,
            about.reference,
            data=about.data,
            task=about.task,
            after=about.after,
            target=task.target,
            on=self._on(task),
            store=self._store,
            on_progress=self._speak,
        )
        return accuracy_of(digest, found)

    def _on(self, task: _Task) -> On | None:
        machine = task.place.machine
        return None if machine is None else On(machine, self._wish.scheduler, self._wish.tls)

    @contextlib.contextmanager
    def _folder(self, status: CellStatus) -> Iterator[Path]:
        """The build as files: of the store; where it went to make room, of the folder it was written to or the feed."""
        assert status.facts is not None
        artifact = self._store.get(Key(status.facts.key, _BUILD))
        written = None if status.folder is None else Path(status.folder)
        with scratch("measured", self._store.root.parent / "scratch") as place:
            if artifact is not None:
                with self._store.lease(artifact):
                    yield self._store.materialize(artifact, place / "build", link=True)
            elif written is not None and written.is_dir():
                yield written
            elif self._wish.feed is not None and status.state == "published":
                query = PackageQuery(status.cell.model, status.cell.target, status.facts.precision)
                pull(self._wish.feed, query, place / "build", store=self._store)
                yield place / "build"
            else:
                raise InputError("its build is gone", cause="it went to make room, and is in no folder", fix=_GONE)

    def _note(self, changed: Sequence[CellStatus]) -> None:
        """What is new, at once."""
        with self._lock:
            new = [status for status in changed if status != self._now[status.cell.id]]
            if new:
                self._ledger.append_all((status.cell.id, status.state, status.note) for status in new)
            self._now.update((status.cell.id, status) for status in new)

    def _say(self, words: str) -> None:
        self._speak(Progress(words))

    def _speak(self, progress: Progress) -> None:
        with self._lock:
            self._tell(progress)


def _subjects(group: CellGroup, numbers: Sequence[int]) -> dict[int, _Subject]:
    assert group.source is not None or not numbers
    found = {}
    rows = {number: pipeline.judged_rows(group.recipe(number)) for number in numbers}
    for number, (data, _) in rows.items():
        assert group.source is not None
        after = max(count for other, count in rows.values() if other == data)
        task = group.cells[number].task or group.source.task
        found[number] = _Subject(reference_of(group.source), data, after, task)
    return found
