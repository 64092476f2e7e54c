"""`modelwright.find`."""

from __future__ import annotations

from pathlib import Path

from modelwright import overview, recipes
from modelwright.api._opened import opened
from modelwright.api.read import read
from modelwright.errors import UsageError, did_you_mean
from modelwright.overview import FindWish, Found, HubModels
from modelwright.store import Store
from modelwright.support import LEVELS
from modelwright.targets import Target, parse_target
from modelwright.vocabulary import OnProgress, read_task


def find(
    task: str,
    target: str | Target = "cpu",
    *,
    max_size: int | None = None,
    min_level: str | None = None,
    hub: bool = True,
    catalogue: str | Path | None = None,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> Found:
    """Models for a task on a target, those that were shown most first: level, accuracy, latency and placement with the
    evidence that says so, licence, and the command that builds them.

    From the catalogue's evidence, with what records of this store add about the same content; and from the Hub where it
    can be reached, of whose models nothing is shown. What is known to be bad is left out; with `max_size` (bytes) what
    is larger or of unknown size; with `min_level` what was not shown that far; each with the reason.
    """
    if min_level is not None and min_level not in LEVELS:
        raise UsageError(
            f"{min_level} is no level",
            cause=f"they are {', '.join(LEVELS)}",
            fix=did_you_mean(min_level, LEVELS) or "L2",
        )
    wish = FindWish(read_task(task).name, parse_target(target), max_size, min_level)
    place = recipes.own_folder() if catalogue is None else Path(catalogue).expanduser()
    entries = {entry.name: entry for entry in recipes.read_entries(place)}
    with opened(store) as kept:
        known = overview.gather(kept, lambda name: read(name, store=kept), place, on_progress)
    asked = overview.hub_models(wish.task) if hub else HubModels((), "the Hub was not asked")
    return overview.shortlist(wish, ((entries[row.entry], row) for row in known.support), known, asked)
