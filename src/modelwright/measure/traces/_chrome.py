"""The recording as a Chrome trace: open it in chrome://tracing or ui.perfetto.dev.

onnxruntime's own file has decorated names, a kilobyte of thread statistics per event and no operators inside
partitions; this one has the model's names and one event per line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from modelwright._output import SEAL, write_output
from modelwright.measure.traces._spans import CallSpan, Layout, OpRow
from modelwright.measure.traces._types import Operator, OpTrace

_PROCESS, _RUNTIME_ROW, _PARTITION_ROW = 1, 1, 2


def write_chrome(trace: OpTrace, layout: Layout, ids: Mapping[OpRow, str], path: Path) -> None:
    """All runs, warm-up included and marked. Written whole or not at all."""
    events = (*_events(trace, layout, ids), _label("wright", 0, SEAL))
    lines = ",\n".join(json.dumps(event, allow_nan=False) for event in events)
    write_output(path, f"[\n{lines}\n]\n")


def _events(trace: OpTrace, layout: Layout, ids: Mapping[OpRow, str]) -> Iterator[dict[str, Any]]:
    operators = {item.id: item for item in trace.operators}
    runtime = f"onnxruntime {trace.bound.onnxruntime}" if trace.bound else "onnxruntime"
    simulated = trace.source.timing_valid is False
    stamp = {"timing_valid": False} if simulated else {}
    title = f"{Path(trace.model).name} on {trace.requested.target}"
    yield _label("process_name", 0, f"{title} (SIMULATED: times mean nothing)" if simulated else title)
    yield _label("thread_name", _RUNTIME_ROW, runtime)
    if layout.blocks:
        yield _label("thread_name", _PARTITION_ROW, "inside partitions (lengths measured, order assumed)")
    origin = layout.profile.runs[0].start if layout.profile.runs else 0
    for number, run in enumerate(layout.profile.runs):
        warm = number < trace.window.warmup
        start = run.start - origin
        kind = "warm-up" if warm else "run"
        index = number if warm else number - trace.window.warmup
        yield _event(f"{kind} {index}", kind, start, run.duration, _RUNTIME_ROW, stamp)
        for span in layout.spans(number):
            operator = operators.get(ids.get(span.row, ""))
            if operator is not None:
                yield _call(operator, span, start, warm, stamp)


def _call(operator: Operator, span: CallSpan, start: float, warm: bool, stamp: Mapping[str, bool]) -> dict[str, Any]:
    name = operator.onnx_nodes[0] if len(operator.onnx_nodes) == 1 else operator.node
    details = {
        "op_type": operator.op_type,
        "provider": operator.provider,
        "runtime_name": operator.node,
        "model_nodes": ", ".join(operator.onnx_nodes) or None,
        "inputs": ", ".join(operator.inputs or ()) or None,
        "outputs": ", ".join(operator.outputs or ()) or None,
        "cycles": span.cycles,
    }
    kept = {**{key: value for key, value in details.items() if value is not None}, **stamp}
    row = _PARTITION_ROW if span.inner is not None else _RUNTIME_ROW
    kind = "warm-up" if warm else operator.kind
    return _event(name, kind, start + span.start, span.duration, row, kept)


def _event(
    name: str, category: str, start: float, duration: float, row: int, details: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "name": name,
        "cat": category,
        "ph": "X",
        "ts": start,
        "dur": duration,
        "pid": _PROCESS,
        "tid": row,
        "args": dict(details),
    }


def _label(what: str, row: int, text: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": _PROCESS, "tid": row, "args": {"name": text}}
