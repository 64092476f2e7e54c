"""What there is to do: a stage with its parameters and inputs, and all of them for one command."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import field
from typing import Any, Generic, TypeVar, cast

from modelwright._dataclass import dataclass
from modelwright._json import digest
from modelwright.plans._model import Model
from modelwright.stages import Stage
from modelwright.store import Key, stage_key

P = TypeVar("P")
O = TypeVar("O")  # noqa: E741 - the outcome


@dataclass(frozen=True)
class _Shape:
    """What a stage and its parameters say in a key. Thousands of nodes of a large plan say the same."""

    libraries: Mapping[str, str]
    params: Any
    digest: str


@functools.lru_cache(1024)
def _shape(stage: Stage[Any, Any], params: Hashable) -> _Shape:
    libraries, said = stage.libraries(), stage.said(params)
    return _Shape(libraries, said, digest([stage.name, stage.version, libraries, said]))


@dataclass(frozen=True, eq=False)
class Ref:
    """The model that another node makes."""

    node: Node[Any, Any]
    folder: str = ""


@dataclass(frozen=True, eq=False)
class Node(Generic[P, O]):
    """One run of a stage that may be needed. A value: it can be pickled, and two with the same `id` are one.

    - `inputs` are models by the names of the task's parameters; `given` is what else the task gets.
    - `marks` are digests of what shapes the result beside models and parameters: the samples, the CPU.
    - `data_bytes` is what the samples take, None when nobody knows.
    - `needs` must have ended well, and not have said no (`passed` false), or this is left out.
    - `open` says why the key cannot be known before the work is done: the user's own code decides something.
    """

    stage: Stage[P, O]
    params: P
    inputs: Mapping[str, Model | Ref]
    label: str
    given: Mapping[str, Any] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
    data_bytes: int | None = 0
    needs: tuple[Node[Any, Any], ...] = ()
    open: str | None = None

    @functools.cached_property
    def upstream(self) -> tuple[Node[Any, Any], ...]:
        """Whatever has to be over before this begins."""
        return (*(model.node for model in self.inputs.values() if isinstance(model, Ref)), *self.needs)

    @functools.cached_property
    def id(self) -> str:
        """Follows from everything upstream, so it is known before anything has run."""
        inputs = {
            name: f"{model.node.id}/{model.folder}" if isinstance(model, Ref) else model.digest
            for name, model in self.inputs.items()
        }
        return digest([self._shape.digest, inputs, self._marks, [node.id for node in self.needs], self.open])

    def key(self, models: Mapping[str, Model], packages: Mapping[str, str] | None = None) -> Key:
        """The name of the result in the store. It follows from the content of the inputs: if a changed stage upstream
        made the same model again, nothing from here on has to run. `packages` are the versions of another machine."""
        inputs = {name: model.digest for name, model in models.items()}
        here = self._shape.libraries
        there = here if packages is None else {name: packages[name] for name in self.stage.packages if name in packages}
        return stage_key(
            stage=self.stage.name,
            version=self.stage.version,
            libraries=there,
            inputs={**inputs, **self._marks},
            params=self._shape.params,
        )

    def size(self, models: Mapping[str, Model]) -> int | None:
        """What the work is about, in bytes."""
        return None if self.data_bytes is None else sum(model.size for model in models.values()) + self.data_bytes

    @property
    def _shape(self) -> _Shape:
        return _shape(self.stage, cast(Hashable, self.params))

    @functools.cached_property
    def _marks(self) -> Mapping[str, str]:
        return {**self.marks, **self.stage.host(self.params)}


AnyNode = Node[Any, Any]


@dataclass(frozen=True)
class Plan:
    """What is wanted, by the name of who wants it (a target). What several want is there once.

    Some of the work is known only when other work is done: `after` is told what became of each node, in the thread that
    runs the plan, and gives what is wanted because of it. What it gives may have ended already; then it is told again.
    """

    goals: Mapping[str, tuple[AnyNode, ...]]
    after: Callable[[Any], Iterable[AnyNode]] | None = None

    @functools.cached_property
    def nodes(self) -> tuple[AnyNode, ...]:
        """Each once, after everything it depends on."""
        found: dict[str, AnyNode] = {}
        for wanted in self.goals.values():
            for goal in wanted:
                trace(goal, found)
        return tuple(found.values())

    @functools.cached_property
    def users(self) -> Mapping[str, tuple[str, ...]]:
        """Who needs a node, by its id."""
        found: dict[str, list[str]] = {}
        for name, wanted in self.goals.items():
            mine: dict[str, AnyNode] = {}
            for goal in wanted:
                trace(goal, mine)
            for node in mine:
                found.setdefault(node, []).append(name)
        return {node: tuple(names) for node, names in found.items()}


def trace(node: AnyNode, found: dict[str, AnyNode]) -> None:
    """Adds the node behind everything upstream of it, each once."""
    if node.id not in found:
        for before in node.upstream:
            trace(before, found)
        found[node.id] = node
