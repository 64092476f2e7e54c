"""Which machines may do a node: they have what it needs, and would make the very same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from modelwright._dataclass import dataclass
from modelwright._installed import installed
from modelwright.errors import ExecutionError
from modelwright.farm.cluster._cluster import SLOT, ClusterWorker
from modelwright.farm.cluster._hand import CPU_MARK
from modelwright.farm.cluster._wire import SMALL
from modelwright.plans import Model, Node
from modelwright.store import Key
from modelwright.targets import parse_target

AnyNode = Node[Any, Any]
EP = "ep:"


@dataclass(frozen=True)
class Berth:
    """Machines that would keep the result under the same key."""

    key: Key
    workers: tuple[ClusterWorker, ...]

    @property
    def addresses(self) -> list[str]:
        return [worker.address for worker in self.workers]

    def name_of(self, address: str) -> str:
        return next(worker.name for worker in self.workers if worker.address == address)


def asks_ep(node: AnyNode) -> str | None:
    """The EP that a node runs, as a resource; None where any machine will do."""
    target = getattr(node.params, "target", None)
    if not isinstance(target, str) or parse_target(target).ep == "cpu":
        return None
    return EP + parse_target(target).word


def needs_of(node: AnyNode, known: Iterable[str]) -> dict[str, float]:
    """What a node takes of a machine. An EP that no machine ever announced is asked anywhere, as it is on one machine:
    the answer is that it is not installed; but nothing is compiled without it."""
    ep = asks_ep(node)
    if ep is None or (ep not in known and node.stage.name != "compile"):
        return {SLOT: 1}
    return {SLOT: 1, ep: 1}


def able(workers: Iterable[ClusterWorker], needs: Mapping[str, float]) -> list[ClusterWorker]:
    return [one for one in workers if all(one.resources.get(name, 0) >= count for name, count in needs.items())]


def berth_for(
    node: AnyNode, models: Mapping[str, Model], workers: Iterable[ClusterWorker], needs: Mapping[str, float]
) -> Berth | ExecutionError:
    """Those that name the result as this machine would; else those that have a package this machine lacks."""
    there = able(workers, needs)
    if not there:
        have = sorted({name for one in workers for name in one.resources} - {SLOT})
        return ExecutionError(
            f"no worker can {node.stage.name} {node.label}",
            cause=f"it needs {' and '.join(sorted(needs))}, and the cluster has {', '.join(have) or 'no worker'}",
            fix="start `wright worker` on a machine that can",
        )
    fitting = [(one, node.key(models, one.facts.packages)) for one in there if _differs(node, one) is None]
    if not fitting:
        one = there[0]
        return ExecutionError(
            f"no worker would make the same {node.stage.name} of {node.label}",
            cause=f"{one.name} has {_differs(node, one)}",
            fix="install the same versions on both machines",
        )
    here = node.key(models)
    key = here if any(key == here for _, key in fitting) else fitting[0][1]
    return Berth(key, tuple(one for one, other in fitting if other == key))


def nearest(workers: Iterable[ClusterWorker], lacking: Mapping[str, int], busy: Mapping[str, int]) -> list[str]:
    """The addresses that a job may go to: that of a free machine which has what the job reads, where this saves others
    much (`lacking` are bytes by address); else all of them, and whoever is free first does it."""
    there = list(workers)
    free = [one for one in there if busy.get(one.address, 0) < one.facts.slots]
    best = min(free, key=lambda one: lacking[one.address], default=None)
    if best is None or max(lacking[one.address] for one in free) - lacking[best.address] < SMALL:
        return [one.address for one in there]
    return [best.address]


def _differs(node: AnyNode, worker: ClusterWorker) -> str | None:
    """What of a machine would shape another result."""
    for name in node.stage.packages:
        here, there = installed(name), worker.facts.packages.get(name)
        if here is not None and here != there:
            return f"{name} {there or 'not at all'} where this machine has {here}"
    if node.marks.get(CPU_MARK, worker.facts.cpu) != worker.facts.cpu:
        return "a CPU with other integer kernels"
    return None
