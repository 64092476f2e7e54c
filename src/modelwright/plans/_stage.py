"""Running one stage: key, store, child."""

from __future__ import annotations

import contextlib
import importlib.metadata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelwright._json import digest, plain
from modelwright._scratch import scratch
from modelwright.store import Artifact, FileEntry, Key, Produced, Store, Waiting, stage_key
from modelwright.vocabulary import OnProgress, Progress, silent, within
from modelwright.worker import Task, Worker, run

MODEL = "model.onnx"
Paths = Mapping[str, str]


@dataclass(frozen=True)
class ModelInput:
    """A model inside an artifact; an export of several components keeps each in a folder of its own."""

    artifact: Artifact
    folder: str = ""

    @property
    def files(self) -> tuple[FileEntry, ...]:
        prefix = f"{self.folder}/" if self.folder else ""
        return tuple(file for file in self.artifact.files if file.name.startswith(prefix))

    @property
    def digest(self) -> str:
        """What the files are, without the notes beside them: timings differ between machines, contents must not."""
        skip = len(self.folder) + 1 if self.folder else 0
        return digest(sorted((file.name[skip:], file.digest) for file in self.files))

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def model(self, base: Path) -> str:
        return str(base / self.folder / MODEL)


@dataclass(frozen=True)
class StageCall:
    """One stage to run: what shapes its result, and the task that makes it.

    `inputs` are models by name, handed to `task` as paths; `extra` are further digests for the key. `size` is what the
    work is about in bytes, where that says how much time and memory it may take.
    """

    stage: str
    version: str
    libraries: Sequence[str]
    inputs: Mapping[str, ModelInput]
    params: Any
    task: Callable[[Paths, str], Task[Any]]
    label: str
    extra: Mapping[str, str]
    timeout_s: float
    size: int | None

    @property
    def key(self) -> Key:
        inputs = {name: model.digest for name, model in self.inputs.items()}
        return stage_key(
            stage=self.stage,
            version=self.version,
            libraries={name: version for name in self.libraries if (version := installed(name))},
            inputs={**inputs, **self.extra},
            params=plain(self.params),
        )


@dataclass(frozen=True)
class StageResult:
    """A finished stage. `outcome` are the facts its task noted; `seconds` is what making it took, then or now."""

    stage: str
    key: Key
    artifact: Artifact
    produced: bool
    outcome: Mapping[str, Any]
    seconds: float | None
    cpu_seconds: float | None = None
    peak_rss_bytes: int | None = None


def run_stage(
    store: Store, call: StageCall, on_progress: OnProgress | None = None, worker: Worker | None = None
) -> StageResult:
    """The stage's artifact: from the store if it was ever made, else made in a child.

    A warm `worker` saves the imports of every stage after the first; without one the child is new.
    """
    execute = run if worker is None else worker.run
    tell = within(on_progress or silent, call.stage, call.label)

    def produce(workdir: Path) -> Produced:
        with model_paths(store, call.inputs) as models:
            result = execute(
                call.task(models, str(workdir)),
                timeout=call.timeout_s,
                size=call.size,
                on_progress=tell,
            )
        notes = {
            "outcome": plain(result.unwrap()),
            "seconds": result.duration_s,
            "cpu_seconds": result.cpu_s,
            "peak_rss_bytes": result.peak_rss_bytes,
        }
        return Produced(roles=_roles(workdir), meta=notes)

    def waiting(other: Waiting) -> None:
        tell(Progress(f"waiting for process {other.pid}, which makes the same"))

    tell(Progress("looking in the store"))
    done = store.once(call.key, produce, label=call.label, on_wait=waiting)
    return _result(call, done.artifact, produced=done.produced)


def peek_stage(store: Store, call: StageCall) -> StageResult | None:
    """The stage's result if the store has it; nothing is run."""
    artifact = store.get(call.key)
    return None if artifact is None else _result(call, artifact, produced=False)


def _result(call: StageCall, artifact: Artifact, *, produced: bool) -> StageResult:
    meta: Mapping[str, Any] = artifact.meta
    return StageResult(
        stage=call.stage,
        key=artifact.key,
        artifact=artifact,
        produced=produced,
        outcome=meta["outcome"],
        seconds=meta["seconds"],
        cpu_seconds=meta["cpu_seconds"],
        peak_rss_bytes=meta["peak_rss_bytes"],
    )


@contextlib.contextmanager
def model_paths(store: Store, inputs: Mapping[str, ModelInput]) -> Iterator[Paths]:
    """The inputs as files to read: a model in one file where the store keeps it, others as a copy of their folder.

    Not hard links: onnx refuses external data that has more than one name.
    """
    with contextlib.ExitStack() as stack:
        paths = {}
        for name, model in inputs.items():
            if len(model.files) == 1:
                stack.enter_context(store.lease(model.artifact))
                paths[name] = str(model.artifact.path_of(model.files[0].name))
            else:
                place = stack.enter_context(scratch("inputs", store.root.parent / "scratch"))
                paths[name] = model.model(store.materialize(model.artifact, place / "model"))
        yield paths


def installed(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _roles(folder: Path) -> dict[str, str]:
    """Models by name, everything else as what accompanies them."""
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    return {name: "model" if name.rpartition("/")[2] == MODEL else "companion" for name in files}
