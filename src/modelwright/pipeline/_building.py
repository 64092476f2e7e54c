"""A build on its way: what has ended goes in, what there is to do next comes out. What targets share is made once."""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from modelwright._dataclass import dataclass
from modelwright.data import DataSource, drawn, try_data
from modelwright.errors import InputError, WrightError
from modelwright.models import HfSource, OnnxSource, fetch
from modelwright.pipeline._build import (
    BuildFailure,
    BuildResult,
    Built,
    Head,
    Work,
    exported,
    imported,
    source_name,
    work_for,
)
from modelwright.pipeline._decoding import Decoding, decoding
from modelwright.pipeline._import import foresee_import, import_model
from modelwright.pipeline._nodes import Route, export_node
from modelwright.pipeline._recipe import Recipe
from modelwright.plans import Executor, LocalExecutor, Node, NodeResult, Plan, peek_node
from modelwright.stages.optimize import OPTIMIZE
from modelwright.stages.quantize import QuantizeParams
from modelwright.store import Store
from modelwright.vocabulary import Data, OnProgress, Progress, silent, within

AnyNode = Node[Any, Any]


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
    with Building(source, recipes, store=store, on_progress=on_progress, force=force) as building:
        plan = Plan({"build": building.begin()}, building.after)
        for _ in (executor or LocalExecutor()).run(plan, store, on_progress):
            pass
        return building.results()


@dataclass(frozen=True)
class _Ended:
    result: NodeResult
    after_s: float


class Building:
    """One source on its way to a build for each recipe.

    `begin` and `after` give nodes to run; `finished` is what became of one recipe, as soon as that is known. Samples of
    the user's own code last as long as this does.
    """

    def __init__(
        self,
        source: OnnxSource | HfSource,
        recipes: Sequence[Recipe],
        *,
        store: Store,
        on_progress: OnProgress | None = None,
        force: bool = False,
    ) -> None:
        self._source, self._recipes, self._store = source, tuple(recipes), store
        self._tell, self._force = on_progress or silent, force
        self._began = time.perf_counter()
        self._stack = contextlib.ExitStack()
        self._jobs: list[_Job] = []
        self._ended: dict[str, _Ended] = {}

    def __enter__(self) -> Building:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def begin(self) -> tuple[AnyNode, ...]:
        """What is to be done first: the export, or all of it where the graphs are known."""
        source, recipes, store = self._source, self._recipes, self._store
        data = self._stack.enter_context(_drawn(source, recipes, store, self._tell))
        _try_early(source, recipes, store, data.values())
        if isinstance(source, OnnxSource):
            self._tell(Progress("reading the model", None, "import", source_name(source)))
            head = imported(source, import_model(store, Path(source.path), source_name(source)))
            self._stack.enter_context(store.lease(head.result.artifact))
            self._jobs = [_Job(source, recipe, data[recipe.data], self._force) for recipe in recipes]
            return tuple(node for job in self._jobs for node in job.headed(head))
        here = source
        if any(peek_node(store, export_node(source, recipe)) is None for recipe in recipes):
            here = fetch(source)
        self._jobs = [_Job(here, recipe, data[recipe.data], self._force) for recipe in recipes]
        return tuple(job.exporting(here) for job in self._jobs)

    def after(self, result: NodeResult) -> tuple[AnyNode, ...]:
        """What there is to do because this has ended."""
        self._ended.setdefault(result.node.id, _Ended(result, time.perf_counter() - self._began))
        waiting = [job for job in self._jobs if job.waits is not None and job.waits.id == result.node.id]
        if waiting and result.done is not None:  # what the float graphs wrote is read where it is kept
            self._stack.enter_context(self._store.lease(result.done.artifact))
        return tuple(node for job in waiting for node in job.after(result))

    def finished(self, number: int) -> BuildResult | BuildFailure | None:
        """What became of a recipe; None while something of it is to be done."""
        return self._jobs[number].finished(self._ended)

    def results(self) -> tuple[BuildResult | BuildFailure, ...]:
        found = [self.finished(number) for number in range(len(self._recipes))]
        done = tuple(one for one in found if one is not None)
        if len(done) < len(found):
            raise AssertionError("the executor left work undone that its plan asked for")
        return done


class _Job:
    """One recipe. It waits for its export, then for what the float graphs write, and then knows its work."""

    def __init__(self, source: OnnxSource | HfSource, recipe: Recipe, data: DataSource, force: bool) -> None:
        self._source, self._recipe, self._data, self._force = source, recipe, data, force
        self.waits: AnyNode | None = None
        self._head: Head | None = None
        self._writes: Decoding | None = None
        self._work: Work | None = None
        self._error: WrightError | None = None

    def exporting(self, source: HfSource) -> AnyNode:
        self.waits = export_node(source, self._recipe)
        return self.waits

    def headed(self, head: Head) -> tuple[AnyNode, ...]:
        self._head = head
        self._writes = decoding(self._source, self._recipe, self._data, *head.graphs)
        if self._writes is None:
            return self._known()
        self.waits = self._writes.node
        return (self.waits,)

    def after(self, result: NodeResult) -> tuple[AnyNode, ...]:
        self.waits = None
        if result.done is None:
            self._error = result.cause
            return ()
        if self._head is None:
            assert isinstance(self._source, HfSource)
            return self.headed(exported(self._source, result.done))
        assert self._writes is not None
        self._writes = replace(self._writes, done=result.done)
        return self._known()

    def _known(self) -> tuple[AnyNode, ...]:
        assert self._head is not None
        try:
            self._work = work_for(self._head, self._recipe, self._writes, self._data, force=self._force)
        except WrightError as error:
            self._error = error
            return ()
        return self._work.nodes

    def finished(self, ended: Mapping[str, _Ended]) -> BuildResult | BuildFailure | None:
        if self._error is not None:
            return BuildFailure(self._recipe.target, self._error)
        if self._work is None or self._head is None or not all(node.id in ended for node in self._work.nodes):
            return None
        mine = [ended[node.id] for node in self._work.nodes]
        failed = [item.result for item in mine if item.result.cause is not None]
        if failed:
            return BuildFailure(self._recipe.target, _why(failed[0], self._recipe))
        agree = self._work.agree
        return BuildResult(
            source=source_name(self._source),
            identity=self._source.identity(),
            task=self._source.task,
            target=self._recipe.target,
            recipe=self._recipe,
            components=tuple(_built(one, self._head, ended) for one in self._work.routes),
            links=self._head.links,
            seconds=max(item.after_s for item in mine),
            agreement=None if agree is None else ended[agree.id].result.done,
        )


def _why(failed: NodeResult, recipe: Recipe) -> WrightError:
    """A model that is refused with sizes which nobody told it is not at fault; one told may be wrong for a part."""
    error = failed.cause
    assert error is not None, "it failed"
    guessed = [(item.name, item.size) for item in recipe.reasons.sizes if item.guessed]
    fixed = recipe.optimize.fix_dims if recipe.optimize is not None else ()
    if not fixed or failed.node.stage is not OPTIMIZE or not isinstance(error, InputError):
        return error
    words = ", ".join(f"{name} {size}" for name, size in guessed or fixed)
    doubt = f"Its sizes were fixed ({words}): see that every part of it bears them."
    if guessed:
        doubt = f"Sizes were guessed ({words}): give `dims`, or real `data`."
    doubting = copy.copy(error)  # other targets may have met the same one
    doubting.fix = f"{doubt} {error.fix}"
    return doubting


def _built(found: Route, head: Head, ended: Mapping[str, _Ended]) -> Built:
    done = [result for node in found.nodes if (result := ended[node.id].result.done) is not None]
    gate = ended[found.gate.id].result.done
    assert gate is not None, "a target whose gate did not run has failed"
    check = None if found.check is None else ended[found.check.id].result.done
    made = [result.model for result in done if result not in (gate, check)]
    final = made[-1] if made else found.subject.exported
    asked = None if check is None else check.outcome
    return Built(found.subject.name, (head.result, *done), final, gate.outcome, found.subject.inputs, asked)


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
