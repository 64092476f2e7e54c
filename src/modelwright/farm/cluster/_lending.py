"""A verb that is done on another machine: what is asked crosses as JSON, files by digest, and the answer comes back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from modelwright import __version__
from modelwright._dataclass import dataclass
from modelwright.errors import ExecutionError, UsageError
from modelwright.farm.cluster import _calls as calls
from modelwright.farm.cluster._cluster import DEVICE, SLOT, Cluster, ClusterWorker, LostWorkerError
from modelwright.farm.cluster._errand import Errand, Errands
from modelwright.farm.cluster._freight import Freight
from modelwright.farm.cluster._where import EP
from modelwright.farm.cluster._wire import Reply, ShippedValue, VerbAnswer, VerbJob, read, written
from modelwright.store import FileEntry
from modelwright.targets import parse_target
from modelwright.vocabulary import OnProgress, Progress
from modelwright.worker import said_limits


@dataclass(frozen=True)
class VerbOrder:
    """`given` are the arguments as JSON, with `received:/FOLDER/FILE` where a file of `folders` is meant. `targets` are
    what it runs on; one that is `timed` has the machine for itself."""

    verb: str
    given: Mapping[str, Any]
    folders: Mapping[str, tuple[FileEntry, ...]]
    data: ShippedValue | None
    targets: tuple[str, ...]
    timed: bool


@dataclass(frozen=True)
class Lent:
    """What a machine answered, and which it was."""

    machine: str
    reply: Reply
    answer: VerbAnswer | None


def lend(cluster: Cluster, name: str, order: VerbOrder, freight: Freight, tell: OnProgress) -> Lent:
    """Done on the machine called so. Nothing is done twice: a machine that is lost meanwhile is an error."""
    words = tuple(dict.fromkeys(parse_target(target).word for target in order.targets))
    machine = _machine(cluster.workers(fresh=True), name, words)
    errands = Errands(cluster)
    timeout, memory = said_limits()
    job = VerbJob(
        errands.number(),
        errands.topic,
        order.verb,
        __version__,
        order.given,
        order.folders,
        order.data,
        timeout,
        memory,
    )
    needs = {DEVICE + word: 1.0 for word in words} | {SLOT: float(machine.facts.slots if order.timed else 1)}
    errand = Errand(job.id, written(job), {file.digest: file for file in job.files}, freight.path, calls.run_verb)
    tell(Progress(f"asking {machine.name}"))
    try:
        reply = errands.run(errand, [machine.address], needs, tell).reply
    except LostWorkerError:
        raise ExecutionError(
            f"{machine.name} is gone", cause="its worker left the cluster while it was at it", fix="run it again"
        ) from None
    answer = None if reply.answer is None else read(VerbAnswer, written(reply.answer))
    return Lent(machine.name, reply, answer)


def _machine(workers: Iterable[ClusterWorker], name: str, words: tuple[str, ...]) -> ClusterWorker:
    """The one called so; else the first of those that announce a target of that name."""
    there = sorted(workers, key=lambda one: one.name)
    found = [one for one in there if one.name == name] or [one for one in there if EP + name in one.resources]
    if not found:
        raise UsageError(
            f"no machine of the cluster is called {name}",
            cause=f"there {'are ' + ', '.join(one.name for one in there) if there else 'is none'}",
            fix="`wright cluster workers` lists them; start `wright worker` there, or name another with `on`",
        )
    for one in found:
        missing = [word for word in words if not one.has_device(word)]
        if not missing:
            return one
    has = sorted(word.removeprefix(DEVICE) for word in found[0].resources if word.startswith(DEVICE))
    raise UsageError(
        f"{found[0].name} has no {missing[0]}",
        cause=f"it announced {', '.join(has)}",
        fix="name another machine or target",
    )
