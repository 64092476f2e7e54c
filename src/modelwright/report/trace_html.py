"""An op trace as one HTML file: charts, a timeline and a table to sort, with nothing to download."""

from __future__ import annotations

import html
import json
from importlib import resources
from pathlib import PurePath
from typing import Any

from modelwright._json import plain
from modelwright._output import SEAL
from modelwright.measure import Operator, OpTrace, TraceStatus
from modelwright.report.trace import NO_SPREAD, OPEN_RANKS, TRACED, operator_name, trace_facts, trace_notes

_TEMPLATE = "trace_page.html"


def trace_html(trace: OpTrace) -> str:
    """The whole page. Nothing in it refers to another file or host."""
    page = resources.files("modelwright.report").joinpath(_TEMPLATE).read_text("utf-8")
    parts = {
        "@@TITLE@@": html.escape(f"{PurePath(trace.model).name} on {trace.requested.target}"),
        "@@FACTS@@": "".join(_fact(label, text) for label, text in trace_facts(trace)[1:]),
        "@@NOTES@@": "".join(_note(trace, text) for text in trace_notes(trace)),
        "@@DATA@@": _data(trace),
    }
    for marker, text in parts.items():
        page = page.replace(marker, text)
    return f"{page}<!-- {SEAL} -->\n"


def _fact(label: str, text: str) -> str:
    return f"<div><dt>{html.escape(label)}</dt><dd>{html.escape(text)}</dd></div>"


def _note(trace: OpTrace, text: str) -> str:
    serious = trace.status is not TraceStatus.OK or text not in (TRACED, OPEN_RANKS, NO_SPREAD)
    return f'<p class="note{" serious" if serious else ""}">{html.escape(text)}</p>'


def _data(trace: OpTrace) -> str:
    """JSON that no name in the model can break out of."""
    document = {
        "operators": [_operator(item) for item in trace.operators],
        "types": plain(trace.by_op_type),
        "providers": plain(trace.by_provider),
        "timeline": [
            [span.operator, round(span.start_us, 2), round(span.duration_us, 2), span.depth] for span in trace.timeline
        ],
        "detail": trace.requested.level == "detail",
    }
    text = json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("@@", "@\\u0040")


def _operator(item: Operator) -> dict[str, Any]:
    return {
        "id": item.id,
        "name": operator_name(item),
        "runtime": item.node,
        "nodes": item.onnx_nodes,
        "origin": item.origin,
        "type": item.op_type,
        "ep": item.provider.removesuffix("ExecutionProvider"),
        "partition": item.partition,
        "calls": item.calls_per_run,
        "p50": round(item.self_us.p50, 3),
        "p90": round(item.self_us.p90, 3),
        "max": round(item.self_us.max, 3),
        "percent": None if item.percent is None else round(item.percent, 4),
        "low": None if item.spread is None else round(item.spread.low, 2),
        "high": None if item.spread is None else round(item.spread.high, 2),
        "first": None if item.spread is None else item.spread.first_rank,
        "last": None if item.spread is None else item.spread.last_rank,
        "cycles": None if item.cycles is None else round(item.cycles),
        "shapes": None if item.inputs is None else f"{', '.join(item.inputs)} → {', '.join(item.outputs or ())}",
    }
