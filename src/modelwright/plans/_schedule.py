"""Which nodes of a plan may begin: what has ended goes in, what can be done comes out. No process, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from modelwright.plans._model import Model, ModelInput
from modelwright.plans._node import Node, Plan, Ref, trace
from modelwright.plans._result import NodeResult

AnyNode = Node[Any, Any]


class NodeSchedule:
    """The state of one plan on its way."""

    def __init__(self, plan: Plan) -> None:
        self.results: dict[str, NodeResult] = {}
        self._after = plan.after
        self._waiting = {node.id: node for node in _longest_ways_first(plan.nodes)}
        self._begun: set[str] = set()

    @property
    def finished(self) -> bool:
        return not self._waiting

    def ready(self) -> list[AnyNode]:
        """Nothing they depend on is open; those on the longest way first, since the whole takes as long as that way."""
        return [
            node
            for node in self._waiting.values()
            if node.id not in self._begun and all(before.id in self.results for before in node.upstream)
        ]

    def next_ready(self) -> list[AnyNode]:
        """What waits for nothing but nodes that have begun."""
        over = self.results.keys() | self._begun
        return [
            node
            for node in self._waiting.values()
            if node.id not in self._begun
            and not all(before.id in self.results for before in node.upstream)
            and all(before.id in over for before in node.upstream)
        ]

    def models(self, node: AnyNode) -> Mapping[str, Model]:
        """The inputs of a ready node."""
        return {name: self._made(model) for name, model in node.inputs.items()}

    def _made(self, model: Model | Ref) -> Model:
        if not isinstance(model, Ref):
            return model
        done = self.results[model.node.id].done
        assert done is not None, "a node whose input failed is not ready to run"
        return ModelInput(done.artifact, model.folder)

    def foregone(self, node: AnyNode) -> NodeResult | None:
        """That it is left out: a model it reads was not made, or what it needs did not end well."""
        made = [model.node for model in node.inputs.values() if isinstance(model, Ref)]
        for before in made:
            if self.results[before.id].done is None:
                return NodeResult(node, left_out=self.results[before.id])
        for before in node.needs:
            if not self.results[before.id].good:
                return NodeResult(node, left_out=self.results[before.id])
        return None

    def begin(self, node: AnyNode) -> None:
        self._begun.add(node.id)

    def end(self, result: NodeResult) -> None:
        self.let_go(result)
        self.tell(result)

    def let_go(self, result: NodeResult) -> None:
        """What depends on it may begin, also before whoever made the plan is told."""
        self.results[result.node.id] = result
        self._begun.discard(result.node.id)
        del self._waiting[result.node.id]

    def tell(self, result: NodeResult) -> None:
        """What is wanted because of it comes behind what is there."""
        if self._after is not None:
            self._add(self._after(result))

    def _add(self, wanted: Iterable[AnyNode]) -> None:
        new: dict[str, AnyNode] = {}
        for goal in wanted:
            trace(goal, new)
        ended = [self.results[node] for node in new if node in self.results]
        fresh = tuple(node for node in new.values() if node.id not in self.results and node.id not in self._waiting)
        self._waiting.update((node.id, node) for node in _longest_ways_first(fresh))
        for result in ended:
            self.tell(result)


def _longest_ways_first(nodes: tuple[AnyNode, ...]) -> list[AnyNode]:
    """By the number of nodes on the longest way through each; of equal ways the first of the plan is done first."""
    before: dict[str, int] = {}
    for node in nodes:
        before[node.id] = 1 + max((before.get(upper.id, 0) for upper in node.upstream), default=0)
    after = dict.fromkeys(before, 0)
    for node in reversed(nodes):
        for upper in node.upstream:
            after[upper.id] = max(after.get(upper.id, 0), after[node.id] + 1)
    return sorted(nodes, key=lambda node: -(before[node.id] + after[node.id]))
