"""What a build would do, without doing it and without running the user's own code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright.data import DataSource
from modelwright.models import HfSource, OnnxSource
from modelwright.pipeline._build import Head, Work, exported, imported, work_for
from modelwright.pipeline._decoding import Decoding, decoding
from modelwright.pipeline._import import foresee_import
from modelwright.pipeline._nodes import export_node
from modelwright.pipeline._recipe import Recipe
from modelwright.pipeline._resolve import waits_for_reader
from modelwright.plans import Foreseen, Node, Plan, StageForecast, State, foresee, peek_node
from modelwright.store import Store


@dataclass(frozen=True)
class PlannedStage:
    """A step of `--plan`. `later`: its key cannot be known, because its inputs do not exist yet or because of `why`.

    `shared_with` are other targets of the command that need the very same. `forecast` is told by earlier runs of the
    stage, and null where there are none.
    """

    component: str
    stage: str
    state: State
    key: str | None
    why: str | None = None
    shared_with: tuple[str, ...] = ()
    forecast: StageForecast | None = None


def plan(source: OnnxSource | HfSource, recipe: Recipe, *, store: Store) -> tuple[PlannedStage, ...]:
    return plan_all(source, (recipe,), store=store)[0]


def plan_all(
    source: OnnxSource | HfSource, recipes: Sequence[Recipe], *, store: Store
) -> tuple[tuple[PlannedStage, ...], ...]:
    """The steps of each recipe. What several of them need is done once, and says so."""
    names = _names(recipes)
    if isinstance(source, OnnxSource):
        first = foresee_import(store, Path(source.path))
        heads: list[Head | None] = [imported(source, first)] * len(recipes)
        begun = [
            PlannedStage("model", "import", "run" if first.produced else "cached", first.key.digest, shared_with=others)
            for others in (tuple(name for name in names if name != own) for own in names)
        ]
    else:
        begun, heads = _exports(source, recipes, names, store)
    works = [_work(source, recipe, head, store) for recipe, head in zip(recipes, heads, strict=True)]
    wanted = {name: work.nodes for name, work in zip(names, works, strict=True)}
    known = {item.node.id: item for item in foresee(Plan(wanted), store)}
    return tuple(
        (first, *_steps(recipe, name, work, known))
        for recipe, name, first, work in zip(recipes, names, begun, works, strict=True)
    )


def _names(recipes: Sequence[Recipe]) -> list[str]:
    """The targets, with a number where one is asked for twice."""
    targets = [recipe.target for recipe in recipes]
    return [
        target if target not in targets[:place] else f"{target} ({targets[:place].count(target) + 1})"
        for place, target in enumerate(targets)
    ]


def _exports(
    source: HfSource, recipes: Sequence[Recipe], names: list[str], store: Store
) -> tuple[list[PlannedStage], list[Head | None]]:
    nodes = [export_node(source, recipe) for recipe in recipes]
    plan = Plan({name: (node,) for name, node in zip(names, nodes, strict=True)})
    known = {item.node.id: item for item in foresee(plan, store)}
    begun = [_step("all", known[node.id], name) for node, name in zip(nodes, names, strict=True)]
    found = [known[node.id].done for node in nodes]
    return begun, [None if done is None else exported(source, done) for done in found]


@dataclass(frozen=True)
class _Planned:
    """The work of a target, after what its float graphs have to write first; None while nobody knows its graphs."""

    work: Work | None
    writes: Decoding | None = None

    @property
    def nodes(self) -> tuple[Node[Any, Any], ...]:
        first = () if self.writes is None else (self.writes.node,)
        return (*first, *(() if self.work is None else self.work.nodes))


def _work(source: OnnxSource | HfSource, recipe: Recipe, head: Head | None, store: Store) -> _Planned:
    if head is None:
        return _Planned(None)
    if waits_for_reader(source, recipe):
        head = replace(head, subjects=tuple(replace(subject, sized=False) for subject in head.subjects))
    writes = decoding(source, recipe, DataSource(recipe.data), *head.graphs)
    if writes is not None and writes.node.open is None:
        writes = replace(writes, done=peek_node(store, writes.node))
    return _Planned(work_for(head, recipe, writes, None, force=False), writes)


def _steps(recipe: Recipe, name: str, planned: _Planned, known: Mapping[str, Foreseen]) -> Iterator[PlannedStage]:
    if planned.writes is not None:
        yield _step("all", known[planned.writes.node.id], name)
    for found in () if planned.work is None else planned.work.routes:
        for node in found.nodes:
            yield _step(found.subject.name, known[node.id], name)
    if planned.work is not None and planned.work.agree is not None:
        yield _step("all", known[planned.work.agree.id], name)
    if planned.work is None:
        present = {
            "inputs": recipe.inputs,
            "optimize": recipe.optimize,
            "quantize": recipe.quantize,
            "validate": recipe.validation,
        }
        for stage, section in {**present, "compile": recipe.compile, "check": recipe.check}.items():
            if section is not None:
                yield PlannedStage("each", stage, "later", None)


def _step(component: str, found: Foreseen, name: str) -> PlannedStage:
    node: Node[Any, Any] = found.node
    return PlannedStage(
        component=component,
        stage=node.stage.name,
        state=found.state,
        key=None if found.key is None else found.key.digest,
        why=found.why,
        shared_with=tuple(user for user in found.users if user != name),
        forecast=found.forecast,
    )
