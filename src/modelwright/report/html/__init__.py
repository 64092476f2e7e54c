"""Typed results as pages for a browser: `page` for a file of its own, `notebook` for a cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import UsageError
from modelwright.report.html._kit import speaking
from modelwright.report.html._page import Page, framed

if TYPE_CHECKING:
    from modelwright.report.html import (
        advise,
        analysis,
        compare,
        contribution,
        debug,
        diagnose,
        evaluation,
        matrix,
        matrix_model,
        perf,
        repair,
        ship,
        sweep,
        trace,
        tune,
        watch,
    )
else:
    advise = lazy("modelwright.report.html.advise")
    analysis = lazy("modelwright.report.html.analysis")
    compare = lazy("modelwright.report.html.compare")
    contribution = lazy("modelwright.report.html.contribution")
    debug = lazy("modelwright.report.html.debug")
    diagnose = lazy("modelwright.report.html.diagnose")
    evaluation = lazy("modelwright.report.html.evaluation")
    matrix = lazy("modelwright.report.html.matrix")
    matrix_model = lazy("modelwright.report.html.matrix_model")
    perf = lazy("modelwright.report.html.perf")
    repair = lazy("modelwright.report.html.repair")
    ship = lazy("modelwright.report.html.ship")
    sweep = lazy("modelwright.report.html.sweep")
    trace = lazy("modelwright.report.html.trace")
    tune = lazy("modelwright.report.html.tune")
    watch = lazy("modelwright.report.html.watch")

__all__ = ["has_page", "notebook", "page", "page_of"]

# By name, so that the page of one result does not load the rooms of all others.
_PAGES: dict[str, Callable[..., Page]] = {
    "Analyses": lambda result: analysis.analysis_page(result.analyses),
    "CompareResult": lambda result: compare.compare_page(result),
    "DebugReport": lambda result, fixed=None: debug.debug_page(result, fixed and fixed.result),
    "Decision": lambda result: advise.advice_page(result),
    "Diagnosis": lambda result: diagnose.diagnosis_page(result),
    "EvalResult": lambda result: evaluation.eval_page(result),
    "FixResult": lambda result: repair.repair_page(result),
    "Repaired": lambda result: repair.repair_page(result.result),
    "LinkedMatrix": lambda linked: matrix.matrix_page(linked.result, linked=True),
    "MatrixModel": lambda result: matrix_model.model_page(result),
    "MatrixResult": lambda result: matrix.matrix_page(result),
    "OpTrace": lambda result: trace.trace_page(result),
    "PerfResult": lambda result: perf.perf_page(result),
    "ShipResult": lambda result: ship.ship_page(result),
    "SupportReport": lambda result: contribution.contribution_page(result),
    "TuneResult": lambda result: tune.tune_page(result),
    "TuneSweep": lambda result: sweep.sweep_page(result),
    "WatchResult": lambda result: watch.watch_page(result),
}


def has_page(result: object) -> bool:
    return type(result).__name__ in _PAGES


def page(result: object, *more: object, spoken: Callable[[str], str] | None = None) -> str:
    """The whole document; a report of debug may bring what `repair` answered. `spoken` puts its sentences into
    the words of whoever reads them."""
    with speaking(spoken):
        return page_of(result, *more).html()


def page_of(result: object, *more: object) -> Page:
    if not has_page(result):
        kind = getattr(result, "kind", type(result).__name__)
        raise UsageError(f"{kind} has no page", cause="it is text alone", fix="leave its page out")
    return _PAGES[type(result).__name__](result, *more)


def notebook(result: object) -> str | None:
    """The same page in a frame, for a cell; None for a result that has no page."""
    return framed(page(result)) if has_page(result) else None
