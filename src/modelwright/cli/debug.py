"""`wright debug`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelwright._json import plain
from modelwright._lazy import lazy
from modelwright._output import check_output
from modelwright.cli._building import only
from modelwright.cli._data import data_options
from modelwright.cli._fixing import Repair, Repaired, fix_options, run_fix
from modelwright.cli._options import Output, html_option, limit_options, model_options, output_options, target_options
from modelwright.cli._signals import delivered
from modelwright.cli._types import Finite, Size
from modelwright.errors import ExecutionError

if TYPE_CHECKING:
    from modelwright import diagnosis, judge, repairs
    from modelwright.diagnosis import DebugOptions, DebugReport
    from modelwright.repairs import FixOptions
    from modelwright.report import debug as report
    from modelwright.report import fix as fix_report
    from modelwright.report import status
    from modelwright.targets import Target
    from modelwright.vocabulary import Data, OnProgress
else:
    diagnosis = lazy("modelwright.diagnosis")
    judge = lazy("modelwright.judge")
    repairs = lazy("modelwright.repairs")
    report = lazy("modelwright.report.debug")
    fix_report = lazy("modelwright.report.fix")
    status = lazy("modelwright.report.status")


@click.command("debug")
@model_options
@click.option("--reference", type=click.Path(path_type=Path), help="The float model that MODEL was made from.")
@data_options()
@click.option("--memory-budget", type=Size(), default="1GiB", show_default=True, help="For tensors held at a time.")
@click.option("--fail-under-db", type=Finite(), help="Exit 1 when an output is below this SQNR.")
@fix_options
@target_options
@limit_options
@output_options
@html_option
def command(
    model: str, reference: Path | None, wanted: tuple[Target, ...], fail_under_db: float | None,
    data: Data, memory_budget: int, repair: Repair | None, out: Output,
) -> int:  # fmt: skip
    """Where MODEL leaves its reference, tensor by tensor, and which nodes made the noise.

    Every tensor both models have is compared: local (its own rounding), cumulative (against the float run), and what
    its node added. Weights are dequantized in float64. Without --reference: MODEL on --target against the CPU.
    With --fix: half of the samples choose which nodes get more bits, the other half check; exit 1 when that fails.
    """
    check_output(repair.save_recipe if repair is not None else None)
    target = only(wanted)
    pair = (Path(model), None) if reference is None else (reference, Path(model))
    options = diagnosis.DebugOptions(
        # With --fix the target is asked for its placement; its simulator would be too slow to search with.
        target=target if repair is None else None,
        data=data if repair is None else replace(data, samples=None),
        memory_budget=memory_budget,
    )
    asked = _fix_options(repair, data, target) if repair is not None else None
    with status.StatusLine(out.console(sys.stderr), quiet=out.quiet or out.json) as line:
        found, fixed, stop = _looked(pair, options, (repair, asked, target), line)
    with delivered():
        out.draw(found, *([fixed.result] if fixed is not None else []))
        passed = stop is None and (_passed(found, fail_under_db) if fixed is None else fixed.result.met)
        _answer(found, fixed, fail_under_db, passed, out)
    if stop is not None:
        raise stop
    if found.status == "crashed":
        return ExecutionError.exit_code
    return 0 if passed else 1


def _looked(
    models: tuple[Path, Path | None],
    options: DebugOptions,
    wish: tuple[Repair | None, FixOptions | None, Target],
    tell: OnProgress,
) -> tuple[DebugReport, Repaired | None, KeyboardInterrupt | None]:
    """What was found, also when somebody ends it: what was compared until then, or everything without the repair."""
    repair, asked, target = wish
    try:
        found = diagnosis.debug(*models, options, on_progress=tell)
    except diagnosis.DebugInterrupted as stop:
        return stop.partial, None, stop
    if found.status == "crashed":
        return found, None, None
    try:
        fixed = run_fix(models, repair, asked, target, tell) if repair is not None and asked is not None else None
    except repairs.FixInterrupted as stop:
        return found, Repaired(stop.partial, None), stop
    except KeyboardInterrupt as stop:
        return found, None, stop
    return found, fixed, None


def _fix_options(repair: Repair, data: Data, target: Target) -> FixOptions:
    return repairs.FixOptions(
        data=data,
        target_sqnr=repair.target_sqnr,
        target_drop=judge.parse_allowance(repair.target_drop) if repair.target_drop is not None else None,
        metric=repair.metric,
        target=target,
        raise_to=repair.raise_to,
    )


def _answer(found: DebugReport, fixed: Repaired | None, fail_under_db: float | None, passed: bool, out: Output) -> None:
    document = {**plain(found), "fail_under_db": fail_under_db, "passed": passed, "fix": None, "folder": None}
    if fixed is not None:
        document |= {"fix": fixed.result, "folder": fixed.folder}

    def render(_: Any, console: Any) -> None:
        report.render_debug(found, console)
        if fixed is not None:
            fix_report.render_fix(fixed.result, fixed.folder, console)

    out.answer("debug", document, render)


def _passed(found: DebugReport, fail_under_db: float | None) -> bool:
    if found.status in ("no_match", "failed", "interrupted", "crashed"):
        return False
    lowest = found.worst_output_db
    return fail_under_db is None or lowest is None or lowest >= fail_under_db
