"""`modelwright.matrix`, `modelwright.matrix_plan` and `modelwright.matrix_status`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from modelwright import farm
from modelwright._json import plain
from modelwright.api._elsewhere import executor_on
from modelwright.api._kept import verb
from modelwright.api._measuring import Measuring, MeasuringWish
from modelwright.api._opened import opened
from modelwright.api._places import places_for
from modelwright.api.build import Targets
from modelwright.data import drawing
from modelwright.errors import UsageError, did_you_mean
from modelwright.farm import AnyRows, CellChoices, CellGroup, MatrixPlan, MatrixResult, MatrixRun, MatrixWish
from modelwright.farm.feeds import Feed, open_feed
from modelwright.plans import LocalExecutor
from modelwright.store import LedgerEvent, Store, unwritten
from modelwright.targets import parse_targets, usable_cpus
from modelwright.vocabulary import Data, OnProgress, as_data, silent


@verb
def matrix(
    models: AnyRows,
    targets: Targets | None = None,
    *,
    to: str | Path | Feed | None = None,
    output: str | Path | None = None,
    data: Data | str | None = None,
    samples: int | None = None,
    seed: int | None = None,
    compile: bool | None = None,
    groups: Sequence[str] = (),
    priorities: Sequence[int] = (),
    disk: int | None = None,
    workers: int | None = None,
    unjudged: bool = False,
    perf: bool = False,
    evaluate: bool = False,
    retry: Sequence[str] = (),
    trust_remote_code: bool = False,
    scheduler: str | None = None,
    tls: str | Path | None = None,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> MatrixResult:
    """Build every model of a list for every target, and publish what passes its gate to a feed.

    `models` is a list file (JSON or TOML), or rows. Without `targets`: the eight of `farm.EIGHT`. What models and
    targets share is made once; what an earlier run has finished is not done again, whatever the `output`. `data` is for
    rows that name none. `disk` is how many bytes the store may hold: what nobody holds goes first. A failure is
    classified and takes nothing else with it; `retry` names classes to try again. `unjudged` publishes builds that
    nobody could judge, too. `perf` and `evaluate` then measure every build where a machine can: how fast it is, and how
    accurate beside the model as it came; a simulator tells no time. With `scheduler` (`tls://…`) the stages run on the
    workers of that cluster; `tls` is the folder of this machine's certificates. Raises FeedError, with where it stood
    as `partial`, when the feed takes nothing any more.
    """
    _require_classes(retry)
    _require_one_place(workers, scheduler)
    given = {
        "targets": None if targets is None else [str(target) for target in parse_targets(targets)],
        "to": _address(to),
        "output": None if output is None else str(Path(output).absolute()),
        "data": None if data is None else plain(as_data(data)),
        "samples": samples,
        "seed": seed,
        "compile": compile,
        "disk": disk,
        "unjudged": unjudged,
        "perf": perf,
        "evaluate": evaluate,
        "trust_remote_code": trust_remote_code,
    }
    rows = farm.chosen_rows(farm.read_rows(models), groups, priorities)
    feed = None if to is None else open_feed(to)
    cores = workers or max(1, int(usable_cpus()))
    wish = MatrixWish(feed, None if output is None else Path(output).absolute(), disk, unjudged, tuple(retry))
    with opened(store) as place, drawing(place.root.parent), executor_on(scheduler, tls) as many:
        found = _groups(rows, targets, CellChoices(_data(data), samples, seed, compile, trust_remote_code))
        if feed is not None:
            feed.preflight()
        ledger = place.ledger()
        cells = [cell for group in found for cell in group.cells]
        farm.note_order(ledger, cells, {"models": [plain(row) for row in rows], **given})
        ledger.close()
        wish = replace(wish, at_once=2 * max(cores, many.slots if many is not None else 0))
        tell = on_progress or silent
        done = MatrixRun(found, wish, place, many or LocalExecutor(cores=cores), tell).run()
        if not (perf or evaluate):
            return done
        at = None if tls is None else Path(tls)
        measuring = MeasuringWish(perf, evaluate, places_for(scheduler, at), feed, scheduler, at)
        return Measuring(found, done, measuring, place, tell).run()


def matrix_plan(
    models: AnyRows,
    targets: Targets | None = None,
    *,
    to: str | Path | Feed | None = None,
    data: Data | str | None = None,
    samples: int | None = None,
    seed: int | None = None,
    compile: bool | None = None,
    groups: Sequence[str] = (),
    priorities: Sequence[int] = (),
    unjudged: bool = False,
    retry: Sequence[str] = (),
    trust_remote_code: bool = False,
    store: Store | None = None,
) -> MatrixPlan:
    """What `matrix` would do with the same arguments: every cell, and what they share. Nothing is run or written."""
    rows = farm.chosen_rows(farm.read_rows(models), groups, priorities)
    wish = MatrixWish(None if to is None else open_feed(to), unjudged=unjudged, retry=tuple(retry))
    with unwritten(), opened(store) if store is not None else Store(read_only=True) as place:
        found = _groups(rows, targets, CellChoices(_data(data), samples, seed, compile, trust_remote_code))
        ledger = place.ledger()
        now = farm.statuses((cell for group in found for cell in group.cells), ledger)
        ledger.close()
        open_cells = {name for name, status in now.items() if not farm.is_settled(status, wish)}
        return farm.plan_matrix(found, now, open_cells, place)


def matrix_status(*, store: Store | None = None) -> MatrixResult:
    """How the last matrix of the store stands, also while another process is at it."""
    with opened(store) if store is not None else Store(read_only=True) as place:
        ledger = place.ledger()
        try:
            order = farm.last_order(ledger)
            now = farm.statuses(order.cells, ledger)
        finally:
            ledger.close()
    return MatrixResult(tuple(now[cell.id] for cell in order.cells), order.given["to"], order.given["output"])


def last_matrix(*, store: Store | None = None) -> dict[str, Any]:
    """What `matrix` was called with the last time, to be called so again."""
    with opened(store) if store is not None else Store(read_only=True) as place:
        ledger = place.ledger()
        try:
            given = dict(farm.last_order(ledger).given)
        finally:
            ledger.close()
    return {**given, "data": None if given["data"] is None else Data(**given["data"])}


def cell_events(cell: str, *, store: Store | None = None) -> tuple[LedgerEvent, ...]:
    """What happened to a cell, from its first run on."""
    with opened(store) if store is not None else Store(read_only=True) as place:
        ledger = place.ledger()
        try:
            return ledger.events(cell)
        finally:
            ledger.close()


def _groups(rows: Any, targets: Targets | None, choices: CellChoices) -> tuple[CellGroup, ...]:
    return farm.group_cells(rows, parse_targets(targets if targets is not None else list(farm.EIGHT)), choices)


def _data(data: Data | str | None) -> Data | None:
    return None if data is None else as_data(data)


def _address(to: str | Path | Feed | None) -> str | None:
    return to.address if isinstance(to, Feed) else None if to is None else open_feed(to).address


def _require_one_place(workers: int | None, scheduler: str | None) -> None:
    if workers is not None and scheduler is not None:
        raise UsageError(
            "`workers` are processes of this machine, and `scheduler` has its own",
            cause="each `wright worker` says with its slots how much it does at once",
            fix="leave one of them out",
        )


def _require_classes(names: Sequence[str]) -> None:
    for name in names:
        if name not in farm.CLASSES:
            raise UsageError(
                f"{name} is no class of failures",
                cause=f"they are {', '.join(farm.CLASSES)}",
                fix=did_you_mean(name, farm.CLASSES) or "name one of them with `retry`",
            )
