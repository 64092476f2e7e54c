"""The half of a trace that runs in a child: run the model while it is recorded; write down the graph that ran.

Imported by foreign interpreters too, so: standard library, onnxruntime and our own light rooms only.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.measure.traces._monitor import Recorded, TraceMonitor
from modelwright.measure.traces._monitor_contract import Runs, run_monitored
from modelwright.targets import BoundSession, SessionSpec, Target, bind, session_options
from modelwright.worker import progress, task

if TYPE_CHECKING:
    import onnxruntime as ort
else:
    ort = lazy("onnxruntime")

_TELL_EVERY_S = 0.5


@task
def record(
    model: str, target: Target, spec: SessionSpec, feeds: Mapping[str, Any], runs: Runs, folder: str
) -> Recorded:
    """Warm up and run under the profiler. The times are the profiler's; none of them is a latency."""

    def body(session: BoundSession) -> tuple[None, Runs]:
        told = time.monotonic()
        for number in range(runs.warmup + runs.measured):
            session.run(feeds)
            if time.monotonic() - told > _TELL_EVERY_S:
                told = time.monotonic()
                progress("tracing", (number + 1) / (runs.warmup + runs.measured))
        return None, runs

    found = run_monitored(model, target, spec, TraceMonitor(target, Path(folder)), body).seen
    assert isinstance(found, Recorded)
    return found


@task
def write_made_graph(model: str, target: Target, spec: SessionSpec, file: str) -> bool:
    """Open the model again, only to have the optimized graph written. False where an EP compiled part of it."""
    binding = bind(target, spec)
    options = session_options(binding, spec)
    options.optimized_model_filepath = file
    options.add_session_config_entry("session.disable_prepacking", "1")
    try:
        ort.InferenceSession(model, options, providers=binding.providers, enable_fallback=0)
    except Exception as error:  # noqa: BLE001 - onnxruntime raises its own C++ exception types here
        print(f"the optimized graph cannot be written: {error}", flush=True)
        return False
    return True
