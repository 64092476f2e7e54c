"""The functions a driver may have run on a worker: these, by name, with texts, numbers and bytes. See `_guard`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import WrightError
from modelwright.farm.cluster._hand import Hand
from modelwright.farm.cluster._wire import NodeJob, Reply, Report, VerbJob, WireError, read, written
from modelwright.store import FileEntry

if TYPE_CHECKING:
    import distributed
else:
    distributed = lazy("distributed")


def run_job(text: str) -> tuple[str, dict[str, bytes]]:
    """A node, in a thread of the worker. A small result comes along."""
    worker = distributed.get_worker()
    job = read(NodeJob, text)

    def say(report: Report) -> None:
        worker.log_event(job.topic, written(report))

    reply = hand_of(worker).run(job, worker.address, say)
    return written(reply), hand_of(worker).contents(reply)


def run_verb(text: str) -> str:
    """A verb, in a thread of the worker."""
    worker = distributed.get_worker()
    job = read(VerbJob, text)

    def say(report: Report) -> None:
        worker.log_event(job.topic, written(report))

    return written(hand_of(worker).run(job, worker.address, say))


async def tell_facts(keys: bool, dask_worker: Any = None) -> str:
    return written(await asyncio.to_thread(hand_of(dask_worker).facts, keys=keys))


async def put_piece(sender: str, file: str, offset: int, data: bytes, dask_worker: Any = None) -> str:
    entry = read(FileEntry, file)
    return await _answered(dask_worker, hand_of(dask_worker).inbox.put, sender, entry, offset, data)


async def get_piece(file: str, offset: int, dask_worker: Any = None) -> bytes | str:
    """The bytes, or a text that says why not."""
    try:
        return await asyncio.to_thread(hand_of(dask_worker).inbox.get, read(FileEntry, file), offset)
    except WrightError as error:
        return written(Reply(dask_worker.address, error=WireError.of(error)))


async def stop_job(job: str, dask_worker: Any = None) -> None:
    hand_of(dask_worker).stop(job)


async def _answered(worker: Any, function: Any, *args: Any) -> str:
    try:
        await asyncio.to_thread(function, *args)
    except WrightError as error:
        return written(Reply(worker.address, error=WireError.of(error)))
    return written(Reply(worker.address))


def give_hand(worker: Any, hand: Hand) -> None:
    """Dask's worker finds ours in itself."""
    worker.wright_hand = hand


def hand_of(worker: Any) -> Hand:
    found: Hand = worker.wright_hand
    return found
