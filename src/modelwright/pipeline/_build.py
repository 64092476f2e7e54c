"""From a source to checked artifacts for one target or several: what they share is made once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright.data import DataSource, drawn, try_data
from modelwright.errors import UsageError, WrightError
from modelwright.models import HfSource, OnnxSource, fetch, recorded_inputs
from modelwright.pipeline._decoding import Decoding, decoding
from modelwright.pipeline._import import foresee_import, import_model
from modelwright.pipeline._nodes import BuildSubject, Route, export_node, route
from modelwright.pipeline._recipe import Recipe
from modelwright.plans import (
    Executor,
    LocalExecutor,
    ModelInput,
    Node,
    NodeResult,
    Plan,
    StageResult,
    peek_node,
    run_all,
)
from modelwright.stages.check import CheckOutcome
from modelwright.stages.decode import AgreeOutcome, AgreeParams
from modelwright.stages.export import ExportOutcome, Link
from modelwright.stages.quantize import QuantizeParams
from modelwright.stages.validate import ValidateOutcome
from modelwright.store import Store
from modelwright.vocabulary import Data, InputSpec, OnProgress, Progress, silent, weakest, within

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


def build(
    source: OnnxSource | HfSource,
    recipe: Recipe,
    *,
    store: Store,
    on_progress: OnProgress | None = None,
    force: bool = False,
) -> BuildResult:
    """Run what the store does not have. Every stage is a child with a time limit."""
    (result,) = build_all(source, (recipe,), store=store, on_progress=on_progress, force=force)
    if isinstance(result, BuildFailure):
        raise result.error
    return result


def build_all(
    source: OnnxSource | HfSource,
    recipes: Sequence[Recipe],
    *,
    store: Store,
    on_progress: OnProgress | None = None,
    force: bool = False,
    executor: Executor | None = None,
) -> tuple[BuildResult | BuildFailure, ...]:
    """A build for each recipe, side by side where nothing keeps them apart. One that fails does not stop the others.

    `force` lets passes through that a target's EP does not claim.
    """
    began = time.perf_counter()
    tell, executor = on_progress or silent, executor or LocalExecutor()
    with contextlib.ExitStack() as stack:
        data = stack.enter_context(_drawn(source, recipes, store, tell))
        _try_early(source, recipes, store, data.values())
        heads = _heads(source, recipes, store, tell, executor)
        jobs = [_Job(source, recipe, head, data[recipe.data]) for recipe, head in zip(recipes, heads, strict=True)]
        jobs = _decoded(jobs, store, tell, executor)
        for done in (job.writes.done for job in jobs if job.writes is not None):
            if done is not None:
                stack.enter_context(store.lease(done.artifact))
        works = [job.work(force=force) for job in jobs]
        plan = Plan({str(number): work.nodes for number, work in enumerate(works)})
        ended = {
            result.node.id: _Ended(result, time.perf_counter() - began) for result in executor.run(plan, store, tell)
        }
    return tuple(job.finished(work, ended) for job, work in zip(jobs, works, strict=True))


@dataclass(frozen=True)
class _Ended:
    result: NodeResult
    after_s: float


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
        subjects = tuple(replace(subject, data=data) for subject in head.subjects)
        return Work(tuple(route(subject, recipe, force=force) for subject in subjects))
    routes = tuple(route(subject, recipe, force=force) for subject in writes.fed(head.subjects))
    return Work(routes, writes.agreement(recipe, routes))


@dataclass(frozen=True)
class _Job:
    """One target of the command."""

    source: OnnxSource | HfSource
    recipe: Recipe
    head: Head | WrightError
    data: DataSource
    writes: Decoding | None = None

    def work(self, *, force: bool) -> Work:
        if isinstance(self.head, WrightError):
            return Work()
        return work_for(self.head, self.recipe, self.writes, self.data, force=force)

    def finished(self, work: Work, ended: Mapping[str, _Ended]) -> BuildResult | BuildFailure:
        if isinstance(self.head, WrightError):
            return BuildFailure(self.recipe.target, self.head)
        mine = [ended[node.id] for node in work.nodes]
        failed = [error for item in mine if (error := item.result.cause) is not None]
        if failed:
            return BuildFailure(self.recipe.target, failed[0])
        return BuildResult(
            source=source_name(self.source),
            identity=self.source.identity(),
            task=self.source.task,
            target=self.recipe.target,
            recipe=self.recipe,
            components=tuple(_built(one, self.head, ended) for one in work.routes),
            links=self.head.links,
            seconds=max(item.after_s for item in mine),
            agreement=None if work.agree is None else ended[work.agree.id].result.done,
        )


def _decoded(jobs: Sequence[_Job], store: Store, tell: OnProgress, executor: Executor) -> list[_Job]:
    """The jobs with what their float graphs write; those whose graphs cannot have failed."""
    asked = [
        None if isinstance(job.head, WrightError) else decoding(job.source, job.recipe, job.data, *job.head.graphs)
        for job in jobs
    ]
    nodes = tuple(one.node for one in asked if one is not None)
    results = run_all(Plan({"decode": nodes}), store, tell, executor) if nodes else {}
    found = []
    for job, one in zip(jobs, asked, strict=True):
        result = None if one is None else results[one.node.id]
        if one is None or result is None:
            found.append(job)
        elif result.done is None:
            assert result.cause is not None, "it waits for nothing"
            found.append(replace(job, head=result.cause))
        else:
            found.append(replace(job, writes=replace(one, done=result.done)))
    return found


def _built(found: Route, head: Head, ended: Mapping[str, _Ended]) -> Built:
    done = [result for node in found.nodes if (result := ended[node.id].result.done) is not None]
    gate = ended[found.gate.id].result.done
    assert gate is not None, "a target whose gate did not run has failed"
    check = None if found.check is None else ended[found.check.id].result.done
    made = [result.model for result in done if result not in (gate, check)]
    final = made[-1] if made else found.subject.exported
    asked = None if check is None else check.outcome
    return Built(found.subject.name, (head.result, *done), final, gate.outcome, found.subject.inputs, asked)


def _heads(
    source: OnnxSource | HfSource, recipes: Sequence[Recipe], store: Store, tell: OnProgress, executor: Executor
) -> list[Head | WrightError]:
    """The beginning of every target; recipes that export alike have one together."""
    if isinstance(source, OnnxSource):
        tell(Progress("reading the model", None, "import", source_name(source)))
        head = imported(source, import_model(store, Path(source.path), source_name(source)))
        return [head for _ in recipes]
    here = source
    if any(peek_node(store, export_node(source, recipe)) is None for recipe in recipes):
        here = fetch(source)
    nodes = [export_node(here, recipe) for recipe in recipes]
    results = run_all(Plan({"export": tuple(nodes)}), store, tell, executor)
    return [_exported(here, results[node.id]) for node in nodes]


def _try_early(
    source: OnnxSource | HfSource, recipes: Sequence[Recipe], store: Store, data: Iterable[DataSource]
) -> None:
    """What is wrong with real data is said before the first stage runs; where that is done, it is found soon enough."""
    real = [one for one in data if not one.random]
    if not real:
        return
    model = Path(source.path) if isinstance(source, OnnxSource) else None
    if isinstance(source, OnnxSource):
        new = foresee_import(store, Path(source.path)).produced
    else:
        new = any(peek_node(store, export_node(source, recipe)) is None for recipe in recipes)
    for one in real if new else ():
        try_data(one, model, next(recipe.inputs for recipe in recipes if recipe.data == one.data))


def imported(source: OnnxSource, first: StageResult[Any]) -> Head:
    """A model out of a build keeps what its export recorded."""
    inputs = recorded_inputs(Path(source.path))
    return Head(first, (BuildSubject(SINGLE, source_name(source), inputs, first.model),))


def _exported(source: HfSource, result: NodeResult) -> Head | WrightError:
    if result.done is None:
        assert result.cause is not None, "an export needs nothing"
        return result.cause
    return exported(source, result.done)


def exported(source: HfSource, done: StageResult[ExportOutcome]) -> Head:
    parts = done.outcome.components
    labels = [source.name if len(parts) == 1 else f"{source.name} {part.name}" for part in parts]
    subjects = (
        BuildSubject(part.name, label, part.inputs, ModelInput(done.artifact, part.name))
        for part, label in zip(parts, labels, strict=True)
    )
    return Head(done, tuple(subjects), done.outcome.links)


@contextlib.contextmanager
def _drawn(
    source: OnnxSource | HfSource, recipes: Sequence[Recipe], store: Store, tell: OnProgress
) -> Iterator[dict[Data, DataSource]]:
    """The samples of all recipes; those of the user's own function are drawn now, once for all stages and targets."""
    tell = within(tell, "samples", source_name(source))
    with contextlib.ExitStack() as stack:
        found = {}
        for data in dict.fromkeys(recipe.data for recipe in recipes):
            mine = [recipe for recipe in recipes if recipe.data == data]
            # As many for every recipe, quantized or not: then they are drawn once.
            most = max((recipe.quantize or QuantizeParams).samples + recipe.validation.samples for recipe in mine)
            found[data] = stack.enter_context(drawn(DataSource(data), most, store.root.parent, tell))
        yield found


def source_name(source: OnnxSource | HfSource) -> str:
    return Path(source.path).stem if isinstance(source, OnnxSource) else source.name
