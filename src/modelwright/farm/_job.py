"""One source of a matrix on its way to its cells."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from modelwright.errors import WrightError
from modelwright.farm._cells import CellGroup, MatrixCell
from modelwright.pipeline import BuildFailure, Building, BuildResult, Recipe
from modelwright.plans import Node, NodeResult
from modelwright.store import Store
from modelwright.vocabulary import OnProgress

AnyNode = Node[Any, Any]
Made = BuildResult | WrightError


class CellJob:
    """The cells of one source that are to be built. What was made stays in the store for as long as this is open."""

    def __init__(self, group: CellGroup, numbers: Sequence[int], store: Store, tell: OnProgress) -> None:
        self.group, self._numbers, self._store, self._tell = group, tuple(numbers), store, tell
        self.recipes: dict[int, Recipe] = {}
        self._refused: dict[int, WrightError] = {}
        self._building: Building | None = None
        self._held = contextlib.ExitStack()
        self._known: set[str] = set()
        self._told: set[int] = set()

    @property
    def cells(self) -> tuple[MatrixCell, ...]:
        return tuple(self.group.cells[number] for number in self._numbers)

    @property
    def over(self) -> bool:
        return len(self._told) == len(self._numbers)

    def resolve(self) -> None:
        """What each cell is to be: one that cannot be is refused, and the others are not."""
        for number in self._numbers:
            try:
                if self.group.error is not None:
                    raise self.group.error
                self.recipes[number] = self.group.recipe(number)
            except WrightError as error:
                self._refused[number] = error

    def refuse(self, error: WrightError) -> None:
        """None of them is begun."""
        self._refused.update(dict.fromkeys(self.recipes, error))
        self.recipes.clear()

    def begin(self) -> tuple[AnyNode, ...]:
        if not self.recipes:
            return ()
        assert self.group.source is not None
        self._building = Building(
            self.group.source, tuple(self.recipes.values()), store=self._store, on_progress=self._tell
        )
        try:
            return self._awaited(self._building.begin())
        except WrightError as error:
            self.refuse(error)
            return ()

    def wants(self, result: NodeResult) -> bool:
        return result.node.id in self._known

    def after(self, result: NodeResult) -> tuple[AnyNode, ...]:
        assert self._building is not None
        done = result.done
        # Where an outcome is not worth keeping there is nothing to hold.
        if done is not None and done.artifact.files:
            self._held.enter_context(self._store.lease(done.artifact))
        return self._awaited(self._building.after(result))

    def ended(self) -> Iterator[tuple[MatrixCell, Made]]:
        """What has become known of cells since the last look."""
        for number, error in self._refused.items():
            if number not in self._told:
                self._told.add(number)
                yield self.group.cells[number], error
        for place, number in enumerate(self.recipes):
            if number in self._told or self._building is None:
                continue
            found = self._building.finished(place)
            if found is not None:
                self._told.add(number)
                yield self.group.cells[number], found.error if isinstance(found, BuildFailure) else found

    def close(self) -> None:
        if self._building is not None:
            self._building.close()
        self._held.close()

    def _awaited(self, nodes: tuple[AnyNode, ...]) -> tuple[AnyNode, ...]:
        for node in nodes:
            self._know(node)
        return nodes

    def _know(self, node: AnyNode) -> None:
        if node.id not in self._known:
            self._known.add(node.id)
            for before in node.upstream:
                self._know(before)
