"""A quantization report as one HTML file: curves over the graph and tables to sort, with nothing to download."""

from __future__ import annotations

import html
import json
from importlib import resources
from typing import Any

from modelwright._json import plain
from modelwright._output import SEAL
from modelwright.diagnosis import Activation, DebugReport

_TEMPLATE = "debug_page.html"
_FIELDS = (
    *("tensor_name", "order", "node", "op_type", "dtype", "absorbed", "match_kind"),
    *("local_sqnr_db", "cumulative_sqnr_db", "cumulative_worst_db", "introduced_sqnr_db"),
    *("local_reason", "cumulative_reason", "origin_share", "clip_fraction"),
)


def debug_html(report: DebugReport) -> str:
    """The whole page. Nothing in it refers to another file or host."""
    page = resources.files("modelwright.report").joinpath(_TEMPLATE).read_text("utf-8")
    parts = {
        "@@TITLE@@": html.escape(f"{report.quant_model} against {report.float_model}"),
        "@@FACTS@@": "".join(_fact(label, text) for label, text in _facts(report)),
        "@@NOTES@@": "".join(f'<p class="note serious">{html.escape(text)}</p>' for text in _notes(report)),
        "@@DATA@@": _data(report),
    }
    for marker, text in parts.items():
        page = page.replace(marker, text)
    return f"{page}<!-- {SEAL} -->\n"


def _facts(report: DebugReport) -> list[tuple[str, str]]:
    runtimes = report.runtimes
    data = "made up" if report.data.random else report.data.kind
    return [
        ("status", report.status if report.reason is None else f"{report.status}: {report.reason}"),
        ("quantization", report.mode),
        ("samples", f"{report.samples}, {data}"),
        ("computed by", f"{runtimes.candidate}, onnxruntime {runtimes.onnxruntime}" if runtimes else "nothing was run"),
    ]


def _notes(report: DebugReport) -> list[str]:
    notes = list(report.notes)
    if report.data.random and report.samples:
        notes.insert(0, "The samples are made up: real data can look different.")
    if report.runtimes is not None and report.runtimes.simulated:
        notes.insert(0, "A simulator computed the quantized side: the numbers are the EP's own.")
    return notes


def _fact(label: str, text: str) -> str:
    return f"<div><dt>{html.escape(label)}</dt><dd>{html.escape(text)}</dd></div>"


def _data(report: DebugReport) -> str:
    """JSON that no name in the model can break out of."""
    document = {
        "rows": [_row(row) for row in report.activations],
        "outputs": plain(report.model_outputs),
        "weights": plain(report.weights),
        "types": plain(report.by_op_type),
    }
    text = json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("@@", "@\\u0040")


def _row(row: Activation) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _FIELDS}
