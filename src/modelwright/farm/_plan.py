"""What a matrix would do, cell by cell, and what the cells share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence

from modelwright.errors import WrightError
from modelwright.farm._cells import CellGroup
from modelwright.farm._result import MatrixPlan, PlannedCell, SharedWork
from modelwright.farm._states import CellStatus
from modelwright.models import HfSource
from modelwright.pipeline import PlannedStage, Recipe, plan_all
from modelwright.store import Store

_STAGES = ("export", "inputs", "optimize", "quantize", "compile")


def plan_matrix(
    groups: Sequence[CellGroup], now: Mapping[str, CellStatus], open_cells: set[str], store: Store
) -> MatrixPlan:
    """`open_cells` are those that earlier runs have left to do; the others stay as they are `now`."""
    found: dict[str, PlannedCell] = {}
    distinct: dict[str, set[Hashable]] = defaultdict(set)
    alone: Counter[str] = Counter()
    for group in groups:
        numbers = [number for number, cell in enumerate(group.cells) if cell.id in open_cells]
        recipes = _recipes(group, numbers, found)
        for recipe in recipes.values():
            for stage, mark in _marks(group, recipe):
                distinct[stage].add(mark)
                alone[stage] += 1
        for number, steps in _steps(group, recipes, found, store).items():
            cell = group.cells[number]
            found[cell.id] = PlannedCell(cell, "run", recipes[number].precision, cell.note, steps)
    cells = (cell for group in groups for cell in group.cells)
    shown = tuple(found.get(cell.id) or _stands(now[cell.id]) for cell in cells)
    shared = tuple(SharedWork(stage, len(distinct[stage]), alone[stage]) for stage in _STAGES if alone[stage])
    return MatrixPlan(shown, shared, models=len(groups))


def _stands(status: CellStatus) -> PlannedCell:
    if status.failure is not None and status.state == "failed":
        return PlannedCell(status.cell, "failed", why=f"{status.failure.kind}: {status.failure.problem}")
    precision = None if status.facts is None else status.facts.precision
    return PlannedCell(status.cell, "finished", precision, status.cell.note)


def _recipes(group: CellGroup, numbers: Sequence[int], found: dict[str, PlannedCell]) -> dict[int, Recipe]:
    recipes = {}
    for number in numbers:
        try:
            if group.error is not None:
                raise group.error
            recipes[number] = group.recipe(number, planning=True)
        except WrightError as error:
            cell = group.cells[number]
            found[cell.id] = PlannedCell(cell, "refused", why=str(error))
    return recipes


def _steps(
    group: CellGroup, recipes: Mapping[int, Recipe], found: dict[str, PlannedCell], store: Store
) -> dict[int, tuple[PlannedStage, ...]]:
    if not recipes or group.source is None:
        return {}
    try:
        steps = plan_all(group.source, tuple(recipes.values()), store=store)
    except WrightError as error:
        for number in recipes:
            found[group.cells[number].id] = PlannedCell(group.cells[number], "refused", why=str(error))
        return {}
    return dict(zip(recipes, steps, strict=True))


def _marks(group: CellGroup, recipe: Recipe) -> list[tuple[str, Hashable]]:
    """What each stage makes, by everything that is done up to it: what has one mark is one result."""
    upto: tuple[Hashable, ...] = (id(group),)
    found: list[tuple[str, Hashable]] = []
    for stage in _STAGES:
        section = getattr(recipe, stage)
        if section is None or (stage == "export" and not isinstance(group.source, HfSource)):
            continue
        upto = (*upto, stage, section, recipe.data if stage == "quantize" else None)
        found.append((stage, upto))
    return found
