"""`modelwright.debug`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from modelwright import diagnosis
from modelwright.api._inputs import data_for
from modelwright.api._kept import kept, verb
from modelwright.api._model import file_of, source_of
from modelwright.diagnosis import DebugReport
from modelwright.models import OnnxSource
from modelwright.store import Store
from modelwright.targets import Target, parse_target
from modelwright.vocabulary import Data, On, OnProgress

if TYPE_CHECKING:
    from modelwright.api._model import Model


@verb
def debug(
    model: Model,
    reference: str | Path | None = None,
    *,
    component: str | None = None,
    data: Data | str | None = None,
    target: str | Target | None = None,
    memory_budget: int = 1 << 30,
    on: str | On | None = None,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> DebugReport:
    """Where a model leaves its reference, tensor by tensor, and which nodes made the noise.

    Without a `reference`: the model on `target` against itself on the CPU. Raises DebugInterrupted, with what was
    compared as `partial`, when it ends early.
    """
    chosen, cpu = parse_target(target or "cpu"), parse_target("cpu")
    looked_at = file_of(model, chosen, component=component, store=store, on_progress=on_progress)
    before = None
    if reference is not None:
        part = None if isinstance(source_of(reference), OnnxSource) else component
        before = file_of(reference, cpu, component=part, store=store, on_progress=on_progress)
    options = diagnosis.DebugOptions(
        data=data_for(data, model, *([] if reference is None else [reference])),
        memory_budget=memory_budget,
        target=None if target is None else chosen,
        recorded=(before or looked_at).inputs,
    )
    first, second = (looked_at.path, None) if before is None else (before.path, looked_at.path)
    try:
        return kept(diagnosis.debug(first, second, options, on_progress=on_progress))
    except diagnosis.DebugInterrupted as early:
        kept(early.partial)
        raise
