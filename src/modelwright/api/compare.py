"""`modelwright.compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from modelwright import evidence, measure
from modelwright.api._inputs import data_for, input_choice
from modelwright.api._kept import kept, verb
from modelwright.api._model import file_of
from modelwright.api._opened import opened
from modelwright.api.read import read
from modelwright.evidence import Record
from modelwright.measure import Arm, CompareResult, PerfResult
from modelwright.models import HfSource, resolve
from modelwright.store import Store
from modelwright.targets import Target, parse_target
from modelwright.vocabulary import Data, On, OnProgress


@verb
def compare(
    arms: Sequence[str | Path | Arm],
    *,
    target: str | Target = "cpu",
    data: Data | str | None = None,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    threads: int | None = None,
    budget_s: float = 120.0,
    min_effect: float = 0.02,
    alpha: float = 0.05,
    by: Sequence[float] = (0.1, 0.5),
    max_slowdown: float | None = None,
    allow_different: bool = False,
    measure_duplicates: bool = False,
    operators: bool = True,
    retry: str | Path | None = None,
    against: str | Path | None = None,
    wait: bool = True,
    on: str | On | None = None,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> CompareResult:
    """Which arm is faster than the first, with proof; `by` are the quantiles to judge by.

    An arm is a model, or an `Arm` with settings of its own. With `operators` a float base and each quantized arm are
    traced as well, for where that arm loses and wins time. The units of `retry`, a record of the same comparison,
    count too. `against` is a record of another time to look at beside it (`result.against`), which proves nothing; one
    arm alone is then measured against itself, to know its range. With `on` all units are measured on that worker of a
    cluster. Raises ComparisonFailed or ComparisonInterrupted, with
    what was measured as `partial`, when it ends early.
    """
    then = None if against is None else _then(against, store)
    earlier = _earlier(retry, store)
    refs = evidence.record_ids(earlier, then)
    ready = [_built(arm, target, store, on_progress) for arm in arms]
    models = [measure.parse_arm(arm).model for arm in arms]
    if then is not None and len(ready) == 1:
        ready.append(replace(measure.parse_arm(ready[0]), name="again"))
        measure_duplicates = True
    options = measure.CompareOptions(
        target=str(target),
        threads=threads,
        budget_s=budget_s,
        min_effect=min_effect,
        alpha=alpha,
        by=tuple(by),
        max_slowdown=max_slowdown,
        allow_different=allow_different,
        inputs=input_choice(data_for(data, *models), batch, dims),
        measure_duplicates=measure_duplicates,
        wait=wait,
        retry=earlier,
    )
    try:
        explain = measure.explained if operators else None
        result = measure.compare(ready, options, explain=explain, on_progress=on_progress)
    except (measure.ComparisonInterrupted, measure.ComparisonFailed) as early:
        kept(early.partial, refs=refs)
        raise
    if then is not None:
        result = replace(result, against=measure.against(result, then))
    return kept(result, refs=refs)


def _then(against: str | Path, store: Store | None) -> Record[PerfResult | CompareResult]:
    found = read(against, store=store)
    measure.require_times(found)
    return found


def _earlier(retry: str | Path | None, store: Store | None) -> Path | None:
    if retry is None:
        return None
    with opened(store) as place:
        return evidence.record_file(retry, place)


def _built(
    arm: str | Path | Arm, target: str | Target, store: Store | None, on_progress: OnProgress | None
) -> str | Path | Arm:
    """The arm as it is; where it is a Hugging Face model, what that is on its target."""
    spec = measure.parse_arm(arm)
    source = resolve(spec.model)
    if not isinstance(source, HfSource):
        return arm
    file = file_of(source, parse_target(spec.target or target), store=store, on_progress=on_progress)
    return replace(spec, model=str(file.path), name=spec.name or source.name)
