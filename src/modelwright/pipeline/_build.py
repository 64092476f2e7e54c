"""From a source to checked artifacts, stage by stage."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from modelwright.data import CalibrationSource, calibration_source, drawn
from modelwright.errors import InputError
from modelwright.graph import load, summary
from modelwright.models import HfSource, OnnxSource, fetch, recorded_inputs
from modelwright.pipeline._calls import Subject, compile_call, export_call, optimize_call, quantize_call, validate_call
from modelwright.pipeline._claims import refuse_unclaimed
from modelwright.pipeline._import import foresee_import, import_model
from modelwright.pipeline._recipe import Recipe
from modelwright.pipeline._resolve import waits_for_reader
from modelwright.plans import ModelInput, StageCall, StageResult, peek_stage, run_stage
from modelwright.stages.export import ExportOutcome, Link
from modelwright.stages.validate import ValidateOutcome
from modelwright.store import Store
from modelwright.vocabulary import Data, InputSpec, OnProgress, Progress, silent, within
from modelwright.worker import Worker

_EXPORT = TypeAdapter(ExportOutcome)
_VALIDATION = TypeAdapter(ValidateOutcome)
SINGLE = "model"
_READER = "unknown until the reader runs"


@dataclass(frozen=True)
class Built:
    """One component: every stage it went through, what is delivered, and the answer of the gate."""

    name: str
    stages: tuple[StageResult, ...]
    final: ModelInput
    validation: ValidateOutcome
    inputs: InputSpec

    @property
    def passed(self) -> bool:
        return self.validation.passed


@dataclass(frozen=True)
class BuildResult:
    """A finished build. `passed` is false when a component failed its gate: the artifact is kept, and marked."""

    source: str
    identity: str
    task: str | None
    target: str
    recipe: Recipe
    components: tuple[Built, ...]
    links: tuple[Link, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        return all(component.passed for component in self.components)


@dataclass(frozen=True)
class PlannedStage:
    """A step of `--plan`. `later`: its key cannot be known, because its inputs do not exist yet or because of `why`."""

    component: str
    stage: str
    state: Literal["cached", "run", "later"]
    key: str | None
    why: str | None = None


@dataclass(frozen=True)
class Job:
    """What every component of a build shares.

    `force` lets passes through that the target's EP does not claim. `worker` runs the stages that read and write
    graphs; exporters and EP compilers leave traces in their process, so they get one of their own.
    """

    recipe: Recipe
    store: Store
    on_progress: OnProgress
    force: bool
    worker: Worker


def build(
    source: OnnxSource | HfSource,
    recipe: Recipe,
    *,
    store: Store,
    on_progress: OnProgress | None = None,
    force: bool = False,
) -> BuildResult:
    """Run what the store does not have. Every stage is a child with a time limit."""
    started = time.perf_counter()
    on_progress = on_progress or silent
    source = _fetched(source, recipe, store)
    with Worker() as worker, _data(source, recipe, store, on_progress) as data:
        job = Job(recipe, store, on_progress, force, worker)
        first, subjects, links = _begin(source, job)
        components = tuple(_component(name, replace(subject, data=data), first, job) for name, subject in subjects)
    return BuildResult(
        source=_name(source),
        identity=source.identity(),
        task=source.task,
        target=recipe.target,
        recipe=recipe,
        components=components,
        links=links,
        seconds=time.perf_counter() - started,
    )


def _data(
    source: OnnxSource | HfSource, recipe: Recipe, store: Store, on_progress: OnProgress
) -> contextlib.AbstractContextManager[CalibrationSource]:
    """The recipe's samples; those of the user's own function are drawn now, once for all stages."""
    counts = [section.samples for section in (recipe.quantize, recipe.validation) if section is not None]

    tell = within(on_progress, "samples", _name(source))

    return drawn(calibration_source(recipe.data), max(counts), store.root.parent, tell)


def plan(source: OnnxSource | HfSource, recipe: Recipe, *, store: Store) -> tuple[PlannedStage, ...]:
    """What a build would do, without doing it and without running the user's own code."""
    if isinstance(source, HfSource):
        call = export_call(source, recipe)
        done = peek_stage(store, call)
        head = PlannedStage("all", call.stage, "cached" if done else "run", call.key.digest)
        subjects = _exported(source, done)[0] if done else []
        tail = [step for name, subject in subjects for step in _planned(name, subject, recipe, store)]
        return (head, *(tail or _unknown(recipe)))
    first = foresee_import(store, Path(source.path))
    head = PlannedStage(SINGLE, first.stage, "run" if first.produced else "cached", first.key.digest)
    if waits_for_reader(source, recipe):
        return (head, *(replace(step, component=SINGLE, why=_READER) for step in _unknown(recipe)))
    return (head, *_planned(SINGLE, _imported(source, first), recipe, store))


def _begin(source: OnnxSource | HfSource, job: Job) -> tuple[StageResult, list[tuple[str, Subject]], tuple[Link, ...]]:
    if isinstance(source, OnnxSource):
        _refuse_compiled(Path(source.path))
        job.on_progress(Progress("reading the model", stage="import", label=_name(source)))
        first = import_model(job.store, Path(source.path), _name(source))
        return first, [(SINGLE, _imported(source, first))], ()
    done = run_stage(job.store, export_call(source, job.recipe), job.on_progress)
    return done, *_exported(source, done)


def _fetched(source: OnnxSource | HfSource, recipe: Recipe, store: Store) -> OnnxSource | HfSource:
    """A model on the Hub with its files here, where the store does not have its export."""
    if isinstance(source, HfSource) and peek_stage(store, export_call(source, recipe)) is None:
        return fetch(source)
    return source


def _imported(source: OnnxSource, first: StageResult) -> Subject:
    """A model out of a build keeps what its export recorded."""
    return Subject(_name(source), recorded_inputs(Path(source.path)), ModelInput(first.artifact))


def _exported(source: HfSource, done: StageResult) -> tuple[list[tuple[str, Subject]], tuple[Link, ...]]:
    outcome = _EXPORT.validate_python(done.outcome)
    single = len(outcome.components) == 1
    subjects = [
        (
            part.name,
            Subject(
                source.name if single else f"{source.name} {part.name}",
                part.inputs,
                ModelInput(done.artifact, part.name),
            ),
        )
        for part in outcome.components
    ]
    return subjects, outcome.links


def _component(name: str, subject: Subject, first: StageResult, job: Job) -> Built:
    recipe, results, model = job.recipe, [first], subject.exported

    def advance(call: StageCall | None, worker: Worker | None = job.worker) -> ModelInput:
        if call is None:
            return model
        results.append(run_stage(job.store, call, job.on_progress, worker))
        return ModelInput(results[-1].artifact)

    model = advance(optimize_call(subject, model, recipe))
    if not job.force:
        refuse_unclaimed(job.store, model, recipe)
    model = advance(quantize_call(subject, model, recipe))
    gate = run_stage(job.store, validate_call(subject, model, recipe), job.on_progress, job.worker)
    results.append(gate)
    validation = _VALIDATION.validate_python(gate.outcome)
    if validation.passed:
        model = advance(compile_call(subject, model, recipe), worker=None)
    return Built(name, tuple(results), model, validation, subject.inputs)


def _planned(name: str, subject: Subject, recipe: Recipe, store: Store) -> Iterator[PlannedStage]:
    """Walk the stages as a build would, until one has not been made yet."""
    model: ModelInput | None = subject.exported
    unread = recipe.data.function
    # To ask which stages there are, any data will do.
    asked = recipe.model_copy(update={"data": Data()}) if unread else recipe
    for make in (optimize_call, quantize_call, validate_call, compile_call):
        reads = unread and make in (quantize_call, validate_call)
        if model is None or reads:
            probe = make(subject, subject.exported, asked)
            if probe is not None:
                yield PlannedStage(name, probe.stage, "later", None, _READER if reads else None)
                model = None if probe.stage == "quantize" else model
            continue
        call: StageCall | None = make(subject, model, recipe)
        if call is None:
            continue
        done = peek_stage(store, call)
        yield PlannedStage(name, call.stage, "cached" if done else "run", call.key.digest)
        if call.stage in ("optimize", "quantize"):
            model = ModelInput(done.artifact) if done else None


def _unknown(recipe: Recipe) -> list[PlannedStage]:
    present = {"optimize": recipe.optimize, "quantize": recipe.quantize, "validate": recipe.validation}
    names = [name for name, section in {**present, "compile": recipe.compile}.items() if section is not None]
    return [PlannedStage("each", name, "later", None) for name in names]


def _refuse_compiled(path: Path) -> None:
    compiled = summary(load(path)).ep_context
    if compiled:
        raise InputError(
            f"{path.name} is already compiled",
            cause=f"it holds an EPContext node for {compiled[0].source or 'some EP'}",
            fix="build from the model it was compiled from",
        )


def _name(source: OnnxSource | HfSource) -> str:
    return Path(source.path).stem if isinstance(source, OnnxSource) else source.name
