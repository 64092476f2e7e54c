"""Running one node: key, store, child."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from modelwright._dataclass import dataclass
from modelwright._json import plain
from modelwright._typed import typed
from modelwright.errors import WrightError
from modelwright.graph import MODEL
from modelwright.plans._model import Model, ModelInput, left_in_store, model_paths
from modelwright.plans._node import Node, Ref
from modelwright.store import Artifact, JsonValue, Key, Produced, Store, Waiting
from modelwright.vocabulary import OnProgress, Progress, silent, within
from modelwright.worker import Worker, run

P = TypeVar("P")
O = TypeVar("O")  # noqa: E741 - the outcome


@dataclass(frozen=True, eq=False)
class StageResult(Generic[O]):
    """A finished stage. `facts` is what its task noted, in JSON's terms; `seconds` what making it took, then or now;
    `machine` is the worker of a cluster that made it now.

    Where the outcome was not worth keeping the artifact has no files, and the store does not know it.
    """

    stage: str
    kind: type[O]
    key: Key
    artifact: Artifact
    produced: bool
    facts: Mapping[str, JsonValue]
    seconds: float | None = None
    cpu_seconds: float | None = None
    peak_rss_bytes: int | None = None
    machine: str | None = None

    @functools.cached_property
    def outcome(self) -> O:
        """The same facts with their types; made when somebody looks."""
        return typed(self.kind, self.facts)

    @property
    def model(self) -> ModelInput:
        return ModelInput(self.artifact)


@dataclass(frozen=True, eq=False)
class NodeResult:
    """What became of a node: `done`, an `error`, or left out because of another one."""

    node: Node[Any, Any]
    done: StageResult[Any] | None = None
    error: WrightError | None = None
    left_out: NodeResult | None = None

    @property
    def good(self) -> bool:
        """Whether what needs it may begin."""
        return self.done is not None and self.done.facts.get("passed") is not False

    @property
    def cause(self) -> WrightError | None:
        """Its own error, or that of the node that it was left out for."""
        return self.error if self.left_out is None else self.left_out.cause


class NotKeptError(Exception):
    """Carries an outcome past the store, which keeps nothing of it."""

    def __init__(self, notes: Mapping[str, Any]) -> None:
        super().__init__()
        self.notes = notes


def run_node(
    store: Store,
    node: Node[P, O],
    models: Mapping[str, Model] | None = None,
    on_progress: OnProgress | None = None,
    worker: Worker | None = None,
) -> StageResult[O]:
    """The node's result: from the store if it was ever made, else made in a child. `models` are its inputs, made.

    A warm `worker` saves the imports of every stage after the first; a stage that is `alone` gets a fresh one.
    """
    made = _direct(node) if models is None else models
    tell = within(on_progress or silent, node.stage.name, node.label)
    return made_once(store, node, node.key(made), lambda place: _produce(store, node, made, place, tell, worker), tell)


def made_once(
    store: Store, node: Node[P, O], key: Key, produce: Callable[[Path], Produced], tell: OnProgress
) -> StageResult[O]:
    """The node's result under this key; `produce` is asked only if nobody has it, and raises NotKeptError where nothing
    is to be kept."""

    def waiting(other: Waiting) -> None:
        tell(Progress(f"waiting for process {other.pid}, which makes the same"))

    tell(Progress("looking in the store"))
    try:
        done = store.once(key, produce, label=node.label, on_wait=waiting)
    except NotKeptError as unkept:
        return _result(node, Artifact(key, "", (), unkept.notes, time.time(), store.root), produced=True)
    return _result(node, done.artifact, produced=done.produced)


def _produce(
    store: Store,
    node: Node[Any, O],
    models: Mapping[str, Model],
    workdir: Path,
    tell: OnProgress,
    worker: Worker | None,
) -> Produced:
    size = node.size(models)
    with model_paths(store, models) as paths:
        task = node.stage.task.call(**paths, workdir=str(workdir), params=node.params, **node.given)
        execute = run if worker is None else worker.run
        result = execute(task, timeout=node.stage.patience_s, size=size, on_progress=tell)
    try:
        outcome = result.unwrap()
    except WrightError as error:
        raise _by_label(error, models, paths.values(), node.label) from None
    notes = {
        "outcome": plain(outcome),
        "seconds": result.duration_s,
        "cpu_seconds": result.cpu_s,
        "peak_rss_bytes": result.peak_rss_bytes,
        "input_bytes": size,
    }
    if not node.stage.keeps(outcome):
        raise NotKeptError(notes)
    reused = left_in_store(workdir, models)
    return Produced(roles=_roles(workdir), meta=notes, reused=reused)


def _by_label(error: WrightError, models: Mapping[str, Model], paths: Iterable[str], label: str) -> WrightError:
    """Files of the store are named by their digests, which tells nobody which model it is about."""
    inputs = [model for model in models.values() if isinstance(model, ModelInput)]
    digests = [file.digest for model in inputs for file in model.files]
    for words in (*(path for path in paths if path.endswith(tuple(digests))), *digests):
        error.problem = error.problem.replace(words, label)
        error.cause, error.fix = error.cause.replace(words, label), error.fix.replace(words, label)
    return error


def peek_node(store: Store, node: Node[P, O], models: Mapping[str, Model] | None = None) -> StageResult[O] | None:
    """The node's result if the store has it; nothing is run."""
    artifact = store.get(node.key(_direct(node) if models is None else models))
    return None if artifact is None else _result(node, artifact, produced=False)


def _direct(node: Node[Any, Any]) -> Mapping[str, Model]:
    """The inputs of a node that waits for no other."""
    found = {name: model for name, model in node.inputs.items() if not isinstance(model, Ref)}
    assert len(found) == len(node.inputs), "an executor runs what depends on other nodes"
    return found


def _result(node: Node[Any, O], artifact: Artifact, *, produced: bool) -> StageResult[O]:
    meta: Mapping[str, Any] = artifact.meta
    return StageResult(
        stage=node.stage.name,
        kind=node.stage.outcome,
        key=artifact.key,
        artifact=artifact,
        produced=produced,
        facts=meta["outcome"],
        seconds=meta["seconds"],
        cpu_seconds=meta["cpu_seconds"],
        peak_rss_bytes=meta["peak_rss_bytes"],
    )


def _roles(folder: Path) -> dict[str, str]:
    """Models by name, everything else as what accompanies them."""
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    return {name: "model" if name.rpartition("/")[2] == MODEL else "companion" for name in files}
