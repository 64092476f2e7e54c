"""From a source to checked artifacts for one target or several: what they share is made once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright.data import DataSource
from modelwright.errors import UsageError, WrightError
from modelwright.models import HfSource, OnnxSource, recorded_inputs
from modelwright.pipeline._decoding import Decoding
from modelwright.pipeline._nodes import BuildSubject, Route, route
from modelwright.pipeline._recipe import Recipe
from modelwright.plans import (
    ModelInput,
    Node,
    StageResult,
)
from modelwright.stages.check import CheckOutcome
from modelwright.stages.decode import AgreeOutcome, AgreeParams
from modelwright.stages.export import ExportOutcome, Link
from modelwright.stages.validate import ValidateOutcome
from modelwright.vocabulary import InputSpec, weakest

SINGLE = "model"


@dataclass(frozen=True)
class Built:
    """One component: every stage it went through, what is delivered, and the answer of the gate."""

    name: str
    stages: tuple[StageResult[Any], ...]
    final: ModelInput
    validation: ValidateOutcome
    inputs: InputSpec
    check: CheckOutcome | None = None

    @property
    def passed(self) -> bool | None:
        """What the gate says, and the target itself where there is one beside the CPU."""
        return weakest((self.validation.passed, *(() if self.check is None else (self.check.passed,))))


@dataclass(frozen=True)
class KeptAccuracy:
    """Whether no more than `max_drop` of the task's metric was lost, on so many labelled samples; None: undecided."""

    passed: bool | None
    max_drop: str
    metric: str | None
    value: float | None
    reference: float | None
    samples: int
    target: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class BuildResult:
    """A finished build. `passed` is false when a component failed its gate or its target: it is kept, and marked.

    It is None when nobody could say: a quantized component saw only made-up inputs, or the target could not be asked.
    `accuracy` is there where a drop was allowed for; then both must hold.
    `agreement`: whether the graphs of a model that writes write together what the float ones do.
    """

    source: str
    identity: str
    task: str | None
    target: str
    recipe: Recipe
    components: tuple[Built, ...]
    links: tuple[Link, ...]
    seconds: float
    accuracy: KeptAccuracy | None = None
    agreement: StageResult[AgreeOutcome] | None = None

    @property
    def passed(self) -> bool | None:
        scored = [] if self.accuracy is None else [self.accuracy.passed]
        together = [] if self.agreement is None else [self.agreement.outcome.passed]
        return weakest([*(component.passed for component in self.components), *scored, *together])


@dataclass(frozen=True)
class BuildFailure:
    """A target whose build came to no end, and why."""

    target: str
    error: WrightError


@dataclass(frozen=True)
class Head:
    """Where every component begins: the import or the export, and how parts of the latter are linked."""

    result: StageResult[Any]
    subjects: tuple[BuildSubject, ...]
    links: tuple[Link, ...] = ()

    @property
    def graphs(self) -> tuple[tuple[BuildSubject, ...], tuple[Link, ...]]:
        return self.subjects, self.links


@dataclass(frozen=True)
class Work:
    """What there is to do for one target: each component's way, and what is asked of all of them together."""

    routes: tuple[Route, ...] = ()
    agree: Node[AgreeParams, AgreeOutcome] | None = None

    @property
    def nodes(self) -> tuple[Node[Any, Any], ...]:
        together = () if self.agree is None else (self.agree,)
        return (*(node for one in self.routes for node in one.nodes), *together)


def work_for(head: Head, recipe: Recipe, writes: Decoding | None, data: DataSource | None, *, force: bool) -> Work:
    if recipe.inputs is not None and (writes is not None or len(head.subjects) > 1):
        raise UsageError(
            "the inputs of a model of several graphs cannot be changed",
            cause=f"it has {', '.join(subject.name for subject in head.subjects)}",
            fix="leave [inputs] out, or build the graph that sees images by itself",
        )
    if writes is None:
        fed = head.subjects if data is None else [replace(subject, data=data) for subject in head.subjects]
        return Work(tuple(route(subject, recipe, force=force) for subject in fed))
    routes = tuple(route(subject, recipe, force=force) for subject in writes.fed(head.subjects))
    return Work(routes, writes.agreement(recipe, routes))


def imported(source: OnnxSource, first: StageResult[Any]) -> Head:
    """A model out of a build keeps what its export recorded."""
    inputs = recorded_inputs(Path(source.path))
    return Head(first, (BuildSubject(SINGLE, source_name(source), inputs, first.model),))


def exported(source: HfSource, done: StageResult[ExportOutcome]) -> Head:
    parts = done.outcome.components
    labels = [source.name if len(parts) == 1 else f"{source.name} {part.name}" for part in parts]
    subjects = (
        BuildSubject(part.name, label, part.inputs, ModelInput(done.artifact, part.name))
        for part, label in zip(parts, labels, strict=True)
    )
    return Head(done, tuple(subjects), done.outcome.links)


def source_name(source: OnnxSource | HfSource) -> str:
    return Path(source.path).stem if isinstance(source, OnnxSource) else source.name
