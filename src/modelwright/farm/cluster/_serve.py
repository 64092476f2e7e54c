"""The processes of a cluster: the scheduler, and the workers with what they announce."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright._scratch import scratch
from modelwright.errors import StoreError, UsageError
from modelwright.farm.cluster._calls import give_hand
from modelwright.farm.cluster._cluster import DEVICE, SLOT
from modelwright.farm.cluster._dask import DASK
from modelwright.farm.cluster._freight import Stages
from modelwright.farm.cluster._guard import REFUSED, guarded
from modelwright.farm.cluster._hand import Hand, HandOptions, Lender
from modelwright.farm.cluster._stages import STAGES
from modelwright.farm.cluster._tls import require_tls, security, tls_folder
from modelwright.farm.cluster._where import EP
from modelwright.store import Store
from modelwright.targets import Status, Survey, survey

if TYPE_CHECKING:
    import dask
    import distributed
else:
    dask = lazy("dask")
    distributed = lazy("distributed")

PORT = 8786
_START_S = "20s"
_MANY = 1000.0
# Dask wants to serve pages about itself; they have no route and answer this machine only.
_NOWHERE = "127.0.0.1:0"


@dataclass(frozen=True)
class WorkerChoices:
    """`resources` are announced instead of what a probe of this machine finds."""

    name: str | None = None
    resources: tuple[str, ...] = ()
    slots: int = 1
    trusts: bool = False


def announced(targets: tuple[str, ...], slots: int) -> dict[str, float]:
    """Any number of nodes may use an EP at once, as far as there are slots; a device is measured by one at a time."""
    return {
        SLOT: float(slots),
        **{EP + name: _MANY for name in targets},
        **{DEVICE + name: 1.0 for name in ("cpu", *targets)},
    }


def found_targets(found: Survey, good: tuple[Status, ...] = (Status.USABLE, Status.SIMULATOR)) -> tuple[str, ...]:
    """What this machine really runs, or simulates; a CPU is everywhere."""
    return tuple(name for row in found.eps if row.status in good for name in row.targets if name != "cpu")


def chosen_targets(resources: tuple[str, ...]) -> tuple[str, ...]:
    for word in resources:
        if not word.startswith(EP) or word == EP:
            raise UsageError(
                f"{word} is no resource of a worker", cause="it is written ep:TARGET", fix=f"for example {EP}qnn-npu"
            )
    return tuple(word.removeprefix(EP) for word in resources)


def serve_worker(
    scheduler: str,
    choices: WorkerChoices | None = None,
    *,
    tls: Path | None = None,
    store: Store | None = None,
    stages: Stages = STAGES,
    lender: Lender | None = None,
    on_ready: Callable[[Mapping[str, float]], None] | None = None,
) -> None:
    """Work for the cluster until somebody ends this process or the scheduler is gone. `lender` does verbs."""
    choices = choices or WorkerChoices()
    address, folder = require_tls(scheduler), tls_folder(tls)
    seen = None if choices.resources else survey()
    targets = chosen_targets(choices.resources) if seen is None else found_targets(seen)
    simulated = () if seen is None else found_targets(seen, (Status.SIMULATOR,))
    options = HandOptions(choices.name or socket.gethostname(), choices.slots, choices.trusts, simulated)
    hand = Hand(store or Store(), stages, options, lender)
    resources = announced(targets, choices.slots)
    with guarded(), dask.config.set(DASK), scratch("cluster") as place:
        asyncio.run(_work(address, folder, hand, resources, place, on_ready))


async def _work(
    address: str,
    folder: Path,
    hand: Hand,
    resources: Mapping[str, float],
    place: Path,
    on_ready: Callable[[Mapping[str, float]], None] | None,
) -> None:
    async with worker_for(address, security(folder), hand, resources, place) as worker:
        if on_ready is not None:
            on_ready(resources)
        await worker.finished()


@contextlib.asynccontextmanager
async def worker_for(
    address: str, certificates: Any, hand: Hand, resources: Mapping[str, float], place: Path
) -> AsyncIterator[Any]:
    """Dask's worker with our hand. Memory is the business of the children, which have limits of their own."""
    try:
        worker = distributed.Worker(
            address,
            nthreads=hand.options.slots + 1,
            name=hand.options.name,
            resources=dict(resources),
            security=certificates,
            local_directory=str(place),
            memory_limit=0,
            death_timeout=_START_S,
            dashboard=False,
            dashboard_address=_NOWHERE,
        )
        give_hand(worker, hand)
        for handler in REFUSED:
            worker.handlers.pop(handler, None)
        await worker
    except (OSError, TimeoutError, ValueError, RuntimeError) as error:
        raise StoreError(
            "the cluster does not take this worker",
            cause=str(error.__cause__ or error) or "no answer",
            fix="look at the address, the certificates and whether the name is taken: `wright cluster workers`",
        ) from None
    try:
        async with worker:
            yield worker
    finally:
        await asyncio.to_thread(hand.close)


def serve_scheduler(
    *, host: str = "0.0.0.0", port: int = PORT, tls: Path | None = None, on_ready: Callable[[str], None] | None = None
) -> None:
    """The scheduler of a cluster, until somebody ends this process. It keeps nothing."""
    with guarded(), dask.config.set(DASK):
        asyncio.run(_schedule(host, port, security(tls_folder(tls)), on_ready))


async def _schedule(host: str, port: int, certificates: Any, on_ready: Callable[[str], None] | None) -> None:
    async with distributed.Scheduler(
        host=host, port=port, protocol="tls://", security=certificates, dashboard=False, dashboard_address=_NOWHERE
    ) as scheduler:
        if on_ready is not None:
            on_ready(scheduler.address)
        await scheduler.finished()
