"""What a plan would do, without doing it: nothing is run, nothing is written."""

from __future__ import annotations

from typing import Any, Literal

from modelwright._dataclass import dataclass
from modelwright.plans._forecast import History, StageForecast
from modelwright.plans._node import Node, Plan, Ref
from modelwright.plans._result import NodeResult, StageResult, peek_node
from modelwright.plans._schedule import NodeSchedule
from modelwright.store import Key, Store

State = Literal["cached", "run", "later", "left out"]


@dataclass(frozen=True)
class Foreseen:
    """One node. `later`: it will run, under a key that is known when the nodes before it have run, or for `why`.

    `left out`: a gate that it needs has already said no. `users` are all who want it.
    """

    node: Node[Any, Any]
    state: State
    key: Key | None
    users: tuple[str, ...]
    done: StageResult[Any] | None = None
    forecast: StageForecast | None = None
    why: str | None = None


def foresee(plan: Plan, store: Store) -> tuple[Foreseen, ...]:
    """Every node of the plan, in its order."""
    outlook = _Outlook(plan, store)
    return tuple(outlook.look(node) for node in plan.nodes)


class _Outlook:
    """What is in the store is as good as done; what is not, and what waits for it, stays open."""

    def __init__(self, plan: Plan, store: Store) -> None:
        self._plan, self._store = plan, store
        self._schedule, self._history = NodeSchedule(plan), History(store)
        self._made: dict[str, int | None] = {}

    def look(self, node: Node[Any, Any]) -> Foreseen:
        users = self._plan.users[node.id]
        done = self._schedule.results
        if node.open is not None or not all(before.id in done for before in node.upstream):
            return Foreseen(node, "later", None, users, forecast=self._forecast(node), why=node.open)
        if (gone := self._schedule.foregone(node)) is not None:
            self._schedule.end(gone)
            return Foreseen(node, "left out", None, users)
        models = self._schedule.models(node)
        found = peek_node(self._store, node, models)
        if found is None:
            return Foreseen(node, "run", node.key(models), users, forecast=self._forecast(node))
        self._made[node.id] = found.artifact.size
        self._schedule.end(NodeResult(node, found))
        return Foreseen(node, "cached", found.key, users, found)

    def _forecast(self, node: Node[Any, Any]) -> StageForecast | None:
        """By the size of its inputs: what they are, or what they will be."""
        sizes = [self._made[one.node.id] if isinstance(one, Ref) else one.size for one in node.inputs.values()]
        read = sum(size for size in sizes if size is not None) if None not in sizes else None
        size = None if read is None or node.data_bytes is None else read + node.data_bytes
        found = self._history.forecast(node.stage.name, size)
        # A stage that never ran makes something of the size of what it reads, as far as anyone knows.
        self._made[node.id] = read if found is None else found.output_bytes
        return found
