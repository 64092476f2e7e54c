"""`modelwright.perf`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from modelwright import measure
from modelwright.api._inputs import data_for, input_choice
from modelwright.api._kept import kept, verb
from modelwright.api._model import ModelFile, file_of
from modelwright.measure import PerfResult, ProcessWatch, TelemetryResult
from modelwright.store import Store
from modelwright.targets import Target, parse_target
from modelwright.vocabulary import Data, On, OnProgress

if TYPE_CHECKING:
    from modelwright.api._model import Model


@verb
def perf(
    model: Model,
    target: str | Target = "cpu",
    *,
    component: str | None = None,
    data: Data | str | None = None,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    iterations: int | None = None,
    duration_s: float | None = None,
    warmup: int | None = None,
    sessions: int = 1,
    threads: int | None = None,
    provider_options: Mapping[str, str] | None = None,
    runtime: str | None = None,
    op_trace: Literal["basic", "detail"] | None = None,
    trace_chrome: str | Path | None = None,
    monitor: bool = False,
    wait: bool = True,
    watch: ProcessWatch | None = None,
    on: str | On | None = None,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> PerfResult:
    """How fast a model runs on a target: latency, throughput, load time, memory, and what it was bound to.

    `warmup` None is until steady; `monitor` watches CPU, memory and devices. Without `iterations` it runs for
    `duration_s`, 5 by default. With `on` it is measured on that worker of a cluster. Raises MeasurementFailed or
    MeasurementInterrupted, with what was measured as `partial`, when it ends early.
    """
    chosen = parse_target(target)
    file = file_of(model, chosen, component=component, store=store, on_progress=on_progress)
    options = measure.PerfOptions(
        iterations=iterations,
        duration_s=duration_s,
        warmup=warmup,
        sessions=sessions,
        threads=threads,
        provider_options=dict(provider_options or {}),
        runtime=runtime,
        inputs=input_choice(data_for(data, model), batch, dims, file.inputs),
        wait=wait,
        op_trace=op_trace,
        trace_chrome=Path(trace_chrome) if trace_chrome is not None else None,
    )
    looking_on = watch or (_Monitor() if monitor else None)
    try:
        result = measure.perf(file.path, chosen, options, on_progress=on_progress, watch=looking_on)
    except (measure.MeasurementInterrupted, measure.MeasurementFailed) as early:
        early.partial = kept(_named(early.partial, file))
        raise
    return kept(_named(result, file))


def _named(result: PerfResult, file: ModelFile) -> PerfResult:
    """What was built is called what it was built from: it lies in the store under no name of its own."""
    return replace(result, model=file.name) if file.named else result


class _Monitor:
    """Records what the hardware does, and shows it to nobody."""

    def __init__(self) -> None:
        self._telemetry = measure.Telemetry()

    def start(self, pid: int, samples: Path) -> None:
        self._telemetry.start(pid)

    def stop(self) -> TelemetryResult:
        return self._telemetry.stop()
