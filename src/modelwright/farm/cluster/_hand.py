"""A worker's side: its own store, what it was sent, and the jobs it is at."""

from __future__ import annotations

import contextlib
import hashlib
import platform
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from modelwright import __version__
from modelwright._dataclass import dataclass
from modelwright._disk import disk_errors
from modelwright._installed import installed
from modelwright._json import digest
from modelwright._scratch import scratch
from modelwright.data import DataSource
from modelwright.errors import ExecutionError, UsageError, WrightError
from modelwright.farm.cluster._freight import CODE, RECEIVED, Stages, Unloading, tree
from modelwright.farm.cluster._wire import (
    CHUNK,
    SMALL,
    NodeAnswer,
    NodeJob,
    Reply,
    Report,
    VerbAnswer,
    VerbJob,
    WireError,
    WorkerFacts,
    forged,
)
from modelwright.plans import StageResult, run_node
from modelwright.stages.stage import Stage
from modelwright.store import FileEntry, Store, stage_key
from modelwright.targets import read_cpu, usable_cpus
from modelwright.vocabulary import OnProgress, Progress
from modelwright.worker import Worker, limited, sharing

Say = Callable[[Report], None]
# Content is asked for again when it does not come: the driver may have missed the first word.
_ASK_AGAIN_S = 5.0
_PATIENCE_S = 900.0
_TELL_S = 0.5
_NUMBERS = re.compile("[0-9]+")
CPU_MARK = "cpu"
"""Where integer kernels decide, a key has a mark of the CPU that has them."""


@dataclass(frozen=True)
class HandOptions:
    """`slots` is how many nodes it runs at once; `trusts`: code that comes with a model may run here; `simulated`:
    targets that compute here, and tell no time."""

    name: str
    slots: int = 1
    trusts: bool = False
    simulated: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Loan:
    """A verb that this machine does for another: `given` is as it came, `folders` is where the files of it lie now."""

    verb: str
    given: Mapping[str, Any]
    folders: Mapping[str, Path]
    data: DataSource | None
    store: Store
    tell: OnProgress


Lender = Callable[[Loan], tuple[VerbAnswer | None, WrightError | None]]
"""Does it: the answer, and with an error what there was until then."""


class StoppedError(Exception):
    """The driver gave the job up."""


@dataclass(frozen=True, eq=False)
class _AtWork:
    """A job that runs now, and what ends it."""

    over: threading.Event = field(default_factory=threading.Event)
    children: list[Worker] = field(default_factory=list)


class Hand:
    """Runs nodes of its own modelwright's `stages` in its own `store`, on models it was sent. Safe for many threads."""

    def __init__(self, store: Store, stages: Stages, options: HandOptions, lender: Lender | None = None) -> None:
        self.store, self.options, self._lender = store, options, lender
        self._stages = stages
        self._inbox = Inbox(store)
        self._jobs: dict[str, _AtWork] = {}
        self._free: list[Worker] = []

    @property
    def stages(self) -> Stages:
        return self._stages

    @property
    def inbox(self) -> Inbox:
        return self._inbox

    def facts(self, *, keys: bool = False) -> WorkerFacts:
        packages = {name for stage in self._stages.values() for name in stage.packages}
        made = (entry.key.digest for entry in self.store.entries() if entry.key.stage != RECEIVED) if keys else ()
        return WorkerFacts(
            name=self.options.name,
            system=f"{platform.system()} {platform.machine()}",
            packages={name: version for name in sorted(packages) if (version := installed(name))},
            cpu=digest(read_cpu().features),
            slots=self.options.slots,
            trusts=self.options.trusts,
            version=__version__,
            keys=tuple(made),
            simulated=self.options.simulated,
        )

    def run(self, job: NodeJob | VerbJob, worker: str, say: Say) -> Reply:
        """The job, done or refused; what is wrong with it is an answer too."""
        try:
            with self._at_work(job.id) as here:
                tell = _Teller(job.id, worker, say, here.over)
                self._inbox.wait(job.files, tell.lacks)
                if isinstance(job, VerbJob):
                    return self._lend(job, worker, tell)
                return Reply(worker, self._run(job, tell, here))
        except WrightError as error:
            return Reply(worker, error=WireError.of(error))
        except StoppedError:
            return Reply(worker, error=WireError.of(_given_up()))

    def contents(self, reply: Reply) -> dict[str, bytes]:
        """Of a small result, all of it: nobody has to come back for it."""
        answer = reply.answer
        if not isinstance(answer, NodeAnswer) or sum(file.size for file in answer.files) > SMALL:
            return {}
        paths = {file.digest: self.store.blob(file.digest, file.size) for file in answer.files}
        return {digest: path.read_bytes() for digest, path in paths.items() if path is not None}

    def stop(self, job: str) -> None:
        """End it, also where it waits for a child."""
        here = self._jobs.get(job)
        if here is not None:
            here.over.set()
            for child in tuple(here.children):
                child.interrupt()

    @contextlib.contextmanager
    def _at_work(self, job: str) -> Iterator[_AtWork]:
        here = self._jobs[job] = _AtWork()
        try:
            yield here
        finally:
            del self._jobs[job]

    def _run(self, job: NodeJob, tell: OnProgress, here: _AtWork) -> NodeAnswer:
        with self.places() as place:
            unloading = Unloading(self.store, self._stages, place, trusts=self.options.trusts)
            node, models = unloading.node(job)
            self._require_same(job, node.key(models).digest)
            with self._child(node.stage) as child, self._limits(job):
                here.children.append(child)
                done = run_node(self.store, node, models, tell, child)
        if here.over.is_set():
            raise StoppedError
        return _answered(done)

    def _lend(self, job: VerbJob, worker: str, tell: OnProgress) -> Reply:
        if self._lender is None or job.version != __version__:
            raise ExecutionError(
                f"{self.options.name} does no {job.verb} for modelwright {job.version}",
                cause=f"it has {__version__}",
                fix="install the same modelwright on both machines",
            )
        code = [file.name for files in job.folders.values() for file in files if file.name.endswith(CODE)]
        if code and not self.options.trusts:
            raise UsageError(
                f"{code[0]} is Python code, and {self.options.name} runs none",
                cause="its worker was started without `trust`",
                fix="start `wright worker` with `trust` where you know what the code does",
            )
        with self.places() as place, limited(timeout=job.timeout, memory=job.memory):
            unloading = Unloading(self.store, self._stages, place, trusts=self.options.trusts)
            folders = {_plain_name(slot): place(slot, files) for slot, files in job.folders.items()}
            data = None if job.data is None else unloading.data("data", job.data)
            answer, error = self._lender(Loan(job.verb, job.given, folders, data, self.store, tell))
        return Reply(worker, answer, None if error is None else WireError.of(error))

    @contextlib.contextmanager
    def _child(self, stage: Stage[Any, Any]) -> Iterator[Worker]:
        """A warm one where that is as good as a fresh one."""
        try:
            child = Worker() if stage.alone else self._free.pop()
        except IndexError:
            child = Worker()
        try:
            yield child
        finally:
            if stage.alone or stage.last:
                child.close()
            else:
                self._free.append(child)

    def close(self) -> None:
        """End what it keeps warm."""
        for job in tuple(self._jobs):
            self.stop(job)
        while self._free:
            self._free.pop().close()
        self.store.close()

    def _require_same(self, job: NodeJob, key: str) -> None:
        """A result must be called the same on both sides, or one of them does not know what shaped it."""
        cpu = job.marks.get(CPU_MARK)
        if key != job.key or (cpu is not None and cpu != digest(read_cpu().features)):
            raise ExecutionError(
                f"{self.options.name} would make another {job.stage} than the one that was asked for",
                cause="its libraries, its CPU or a library named for an EP differ from what the plan counts on",
                fix="`wright cluster workers` shows versions; install the same ones",
            )

    @contextlib.contextmanager
    def _limits(self, job: NodeJob) -> Iterator[None]:
        cpus = max(1, int(usable_cpus()) // self.options.slots)
        with limited(timeout=job.timeout, memory=job.memory), sharing(cpus if self.options.slots > 1 else None):
            yield

    @contextlib.contextmanager
    def places(self) -> Iterator[Callable[[str, tuple[FileEntry, ...]], Path]]:
        """Makes folders of received files that last as long as this."""
        with scratch("received", self.store.root.parent / "scratch") as base:

            def place(name: str, files: tuple[FileEntry, ...]) -> Path:
                return self.store.materialize(tree(self.store, files), base / name)

            yield place


class Inbox:
    """Content on its way in. It enters the store when all of it is there and is what its name says."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folder = store.root.parent / "incoming"
        self._news = threading.Condition()

    def lacking(self, files: Iterable[FileEntry]) -> tuple[str, ...]:
        return tuple(file.digest for file in files if self._store.blob(file.digest, file.size) is None)

    def wait(self, files: tuple[FileEntry, ...], ask: Callable[[tuple[str, ...]], None]) -> None:
        """Until every content is here; whoever is asked sends it."""
        moved = time.monotonic()
        missing: tuple[str, ...] = ()
        while lacking := self.lacking(files):
            moved = moved if lacking == missing else time.monotonic()
            missing = lacking
            if time.monotonic() - moved > _PATIENCE_S:
                raise ExecutionError(
                    "the files of a job did not come",
                    cause=f"{len(lacking)} are missing after {_PATIENCE_S:g} s",
                    fix="look whether the driver still runs, then run the same command again",
                )
            ask(lacking)
            with self._news:  # what came since then said so already
                if self.lacking(files) == lacking:
                    self._news.wait(_ASK_AGAIN_S)

    def put(self, sender: str, file: FileEntry, offset: int, data: bytes) -> None:
        """The next piece. One that does not fit on what came before is refused, and so is content of another name."""
        if offset + len(data) > file.size or len(data) > CHUNK:
            raise forged("a file is longer than was said")
        with disk_errors(self._folder, "receive a file"):
            self._folder.mkdir(parents=True, exist_ok=True)
            part = self._folder / f"{file.digest}-{hashlib.sha256(sender.encode()).hexdigest()[:16]}"
            with part.open("wb" if offset == 0 else "r+b") as stream:
                stream.seek(offset)
                stream.write(data)
            if offset + len(data) == file.size:
                self._enter(part, file)

    def _enter(self, part: Path, file: FileEntry) -> None:
        try:
            with part.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
            if found != file.digest or part.stat().st_size != file.size:
                raise forged("a file is not what its digest says")
            key = stage_key(stage=RECEIVED, version="1", libraries={}, inputs={"content": file.digest}, params=None)
            self._store.put({"content": part}, key=key, roles={"content": "content"}, label=RECEIVED)
        finally:
            part.unlink(missing_ok=True)
        with self._news:
            self._news.notify_all()

    def get(self, file: FileEntry, offset: int) -> bytes:
        """A piece of what is here."""
        path = self._store.blob(file.digest, file.size)
        if path is None:
            raise ExecutionError("a result is gone", cause="its file is not in the store", fix="run it again")
        with path.open("rb") as stream:
            stream.seek(offset)
            return stream.read(CHUNK)


class _Teller:
    """Tells the driver how it goes, now and then; raises when nobody wants the work any more."""

    def __init__(self, job: str, worker: str, say: Say, over: threading.Event) -> None:
        self._job, self._worker, self._say, self._over = job, worker, say, over
        self._said: tuple[Any, ...] = ()
        self._at = 0.0

    def __call__(self, progress: Progress) -> None:
        if self._over.is_set():
            raise StoppedError
        # "sample 7 of 32" is no news beside "sample 6 of 32".
        now, what = time.monotonic(), (_NUMBERS.sub("", progress.message), progress.stage)
        if what == self._said and now - self._at < _TELL_S:
            return
        self._said, self._at = what, now
        self._say(Report(self._job, self._worker, progress.message, progress.fraction, progress.stage, progress.label))

    def lacks(self, digests: tuple[str, ...]) -> None:
        if self._over.is_set():
            raise StoppedError
        self._say(Report(self._job, self._worker, lacks=digests))


def _answered(done: StageResult[Any]) -> NodeAnswer:
    artifact = done.artifact
    meta: Mapping[str, Any] = artifact.meta
    return NodeAnswer(done.key.digest, done.produced, bool(artifact.digest), artifact.files, meta)


def _plain_name(slot: str) -> str:
    if not slot.isidentifier():
        raise forged(f"{slot!r} is no name of a folder")
    return slot


def _given_up() -> ExecutionError:
    return ExecutionError("the work was given up", cause="whoever asked for it stopped", fix="run it again")
