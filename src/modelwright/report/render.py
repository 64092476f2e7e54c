"""Any result, on a terminal or in a notebook: each kind has one renderer, and this table knows it."""

from __future__ import annotations

import io
from importlib import import_module
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.report.screen import Screen
from modelwright.vocabulary import Result

if TYPE_CHECKING:
    import rich.console

    from modelwright.report import html as pages
else:
    pages = lazy("modelwright.report.html")

_RENDERERS = {
    "Analyses": "analysis.render_analyses",
    "Builds": "build.render_builds",
    "CompareResult": "compare.render_compare",
    "DebugReport": "debug.render_debug",
    "Decision": "advise.render_decision",
    "Diagnosis": "diagnose.render_diagnosis",
    "EvalResult": "eval.render_eval",
    "ExperimentResult": "knowledge.render_experiment",
    "KbExplanation": "knowledge.render_explanation",
    "Found": "find.render_found",
    "FindingPromotion": "knowledge.render_promotion",
    "GateResult": "support.render_gate",
    "Inspection": "model.render_model",
    "MatrixPlan": "matrix.render_matrix_plan",
    "MatrixResult": "matrix.render_matrix",
    "PairInspection": "model.render_pair",
    "PerfResult": "perf.render_perf",
    "Plans": "build.render_plans",
    "PublishResult": "feeds.render_publish",
    "PullResult": "feeds.render_pull",
    "Repaired": "fix.render_fix",
    "ShipResult": "ship.render_ship",
    "SiteBuilt": "site.render_site",
    "SupportBatch": "support.render_batch",
    "SupportProbe": "support.render_probe",
    "SupportRun": "support.render_run",
    "SupportReport": "support_review.render_report",
    "SupportReview": "support_review.render_review",
    "TuneResult": "tune.render_tune",
    "TuneSweep": "sweep.render_sweep",
    "WatchHistory": "watch.render_history",
    "WatchResult": "watch.render_watch",
    "Verified": "knowledge.render_verified",
}
_WIDTH = 110


def render(result: Result, console: rich.console.Console) -> None:
    """The answer as its command prints it."""
    module, _, function = _RENDERERS[type(result).__name__].partition(".")
    getattr(import_module(f"modelwright.report.{module}"), function)(result, console)


def to_html(result: Result) -> str:
    """The same answer for the cell of a notebook: its page, or what its command prints."""
    page = pages.notebook(result)
    if page is not None:
        return page
    screen = Screen(io.StringIO(), width=_WIDTH)
    screen.record = True
    render(result, screen)
    return screen.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
