"""`wright debug`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelwright._json import plain
from modelwright._lazy import lazy
from modelwright._output import check_output
from modelwright.cli._call import VerbCall, as_python, one_line, say_record
from modelwright.cli._cluster import on_options
from modelwright.cli._data import data_options
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._fixing import fix_options
from modelwright.cli._options import (
    Output,
    component_option,
    html_option,
    limit_options,
    model_options,
    target_option,
    verb_options,
)
from modelwright.cli._signals import delivered
from modelwright.cli._streams import write_utf8
from modelwright.cli._types import Finite, Size
from modelwright.errors import ExecutionError, UsageError
from modelwright.judge import VerdictKind

if TYPE_CHECKING:
    from modelwright import repairs
    from modelwright.diagnosis import DebugReport
    from modelwright.repairs import Repaired
    from modelwright.report import render
    from modelwright.vocabulary import Data, On
else:
    render = lazy("modelwright.report.render")
    repairs = lazy("modelwright.repairs")


@click.command("debug")
@model_options
@component_option
@click.option("--reference", type=click.Path(path_type=Path), help="The float model that MODEL was made from.")
@data_options()
@click.option("--memory-budget", type=Size(), default="1GiB", show_default=True, help="For tensors held at a time.")
@click.option("--fail-under-db", type=Finite(), help="Exit 1 when an output is below this SQNR.")
@fix_options
@target_option
@on_options
@limit_options
@verb_options
@html_option
def command(
    model: str, component: str | None, reference: Path | None, target: str, fail_under_db: float | None, data: Data,
    memory_budget: int, repair: dict[str, Any] | None, on: On | None, out: Output,
) -> int:  # fmt: skip
    """Where MODEL leaves its reference, tensor by tensor, and which nodes made the noise.

    Every tensor both models have is compared: local (its own rounding), cumulative (against the float run), and what
    its node added. Weights are dequantized in float64. Without --reference: MODEL on --target against the CPU.
    With --fix: half of the samples choose what gets more bits, the other half check; exit 1 when that fails, 6 when
    they are too few to prove it.
    """
    if repair is not None and reference is None:
        raise UsageError(
            "--fix needs --reference", cause="it repairs a quantized model", fix="give the float model it was made from"
        )
    if repair is not None and on is not None:
        raise UsageError("--fix repairs on this machine", cause="--on looks on another", fix="leave one of them out")
    # With --fix the target is asked for its placement; its simulator would be too slow to search with.
    looked = {"data": data, "target": target} if repair is None else {"data": replace(data, samples=None)}
    calls = [VerbCall("debug", model, reference, component=component, **looked, memory_budget=memory_budget, on=on)]
    if repair is not None:
        calls.append(VerbCall("repair", model, reference, data=data, target=target, **repair))
    if out.as_python:
        write_utf8(as_python(*calls, out=out))
        return 0
    for written in (out.save, repair["save_recipe"] if repair is not None else None):
        check_output(written)
    found, fixed, stop = _looked(calls, out)
    with delivered():
        passed = stop is None and (_passed(found, fail_under_db) if fixed is None else fixed.result.met)
        if out.save is not None:
            found.save(out.save)
        out.draw(found, *([fixed] if fixed is not None else []))
        _answer(found, fixed, {"fail_under_db": fail_under_db, "passed": passed}, out)
    if stop is not None:
        raise stop
    if found.status == "crashed":
        return ExecutionError.exit_code
    if fixed is not None and fixed.result.status is VerdictKind.INCONCLUSIVE:
        return CANNOT_TELL
    return 0 if passed else NO


def _looked(calls: list[VerbCall], out: Output) -> tuple[DebugReport, Repaired | None, KeyboardInterrupt | None]:
    """What was found, also when somebody ends it: what was compared until then, or everything without the repair."""
    found: DebugReport | None = None
    with one_line(out) as line:
        try:
            found = compared = calls[0].run(on_progress=line)
            more = calls[1:] if compared.status != "crashed" else []
            fixed = more[0].run(on_progress=line) if more else None
        except repairs.FixInterrupted as stop:
            return compared, repairs.Repaired(stop.partial, None), stop
        except KeyboardInterrupt as stop:
            found = found or getattr(stop, "partial", None)
            if found is None:
                raise
            return found, None, stop
    return compared, fixed, None


def _answer(found: DebugReport, fixed: Repaired | None, gate: dict[str, Any], out: Output) -> None:
    document = {"record_id": found.record_id, **found.content(), **gate, "fix": None, "folder": None}
    if fixed is not None:
        document |= {"fix": plain(fixed.result), "folder": fixed.folder}

    def show(_: Any, console: Any) -> None:
        for result in (found, fixed):
            if result is not None:
                render.render(result, console)

    out.answer("debug", document, show)
    for result in (found, fixed):
        if result is not None:
            say_record(result, out)


def _passed(found: DebugReport, fail_under_db: float | None) -> bool:
    if found.status in ("no_match", "failed", "interrupted", "crashed"):
        return False
    lowest = found.worst_output_db
    return fail_under_db is None or lowest is None or lowest >= fail_under_db
