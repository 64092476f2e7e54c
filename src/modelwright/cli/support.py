"""`wright support`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

import modelwright as mw
from modelwright._lazy import lazy
from modelwright.cli._call import Answering, VerbCall, answer, kept_lines
from modelwright.cli._completing import precision_names, target_names
from modelwright.cli._data import data_options
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._group import CommandGroup
from modelwright.cli._options import (
    Output,
    limit_options,
    optional_model,
    output_options,
    require_model,
    source_options,
    verb_options,
    write_document,
)
from modelwright.cli._support_review import list_command, report_command, review_command
from modelwright.cli._types import Duration
from modelwright.errors import UsageError

if TYPE_CHECKING:
    from modelwright.report import render
    from modelwright.support import GateResult, SupportBatch, SupportRun
else:
    render = lazy("modelwright.report.render")

F = TypeVar("F", bound=Callable[..., Any])
_LEVELS = ("L0", "L1", "L2", "L3", "L4", "L5")
_ABOUT = ("task", "revision", "random_weights", "trust_remote_code")


@click.group("support", cls=CommandGroup)
def command() -> None:
    """Adding models: what one needs, what is claimed of it, and what is shown."""


for _reviewing in (list_command, report_command, review_command):
    command.add_command(_reviewing)


@command.command("probe")
@source_options
@output_options
def probe(model: str, about: dict[str, Any], out: Output) -> int:
    """The least that it takes to build MODEL, without loading its weights.

    Its class and how the checkpoint's names fit it, its graphs and their inputs, what can calibrate and score it, and
    the effort: nothing, a setting, a file for its type, or something that other models would share. It is the least:
    only a build shows that it does. Exit 1 where a build lacks something, 6 where nobody can tell without the weights.
    """
    found = mw.support.probe(model, **about)
    if out.json:
        write_document(found.to_dict())
    else:
        render.render(found, out.console(sys.stdout))
    return {True: 0, False: NO, None: CANNOT_TELL}[found.builds]


def _claim_options(function: F) -> F:
    """What is claimed: the model, the contribution, the cases, and where it is written."""

    @optional_model
    @click.option("--task", help="What the model is for; by default its architecture says.")
    @click.option("--revision", help="Branch, tag or commit of a Hub model.")
    @click.option("--random-weights", is_flag=True, help="A config-only folder, with weights by the claim's own seed.")
    @click.option("--trust-remote-code", is_flag=True, help="Run Python code that comes with the model.")
    @click.option("-r", "--recipe", type=click.Path(path_type=Path), help="The contribution: a recipe file.")
    @click.option("--family", help="The contribution: a Python file with a FAMILY, or the name of one that is here.")
    @click.option("--target", "targets", multiple=True, shell_complete=target_names, help="Repeatable.  [default: cpu]")
    @click.option(
        "--precision",
        "precisions",
        multiple=True,
        shell_complete=precision_names,
        help="Repeatable; each for every target. Default: what the recipe or the target's policy says.",
    )
    @click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder: claim and evidence.")
    @functools.wraps(function)
    def wrapper(*args: Any, targets: tuple[str, ...], **kwargs: Any) -> Any:
        return function(*args, targets=targets or ("cpu",), **kwargs)

    return wrapper  # type: ignore[return-value]


def _ladder_options(function: F) -> F:
    """How far, on what, and what is allowed."""

    @click.option(
        "--ceiling", type=click.Choice(_LEVELS), default="L2", show_default=True, help="The level that is claimed."
    )
    @click.option("--metric", help="Your own score at L3 instead of a task: file.py:function of (outputs, row).")
    @click.option("--max-drop", help="Allowed loss at L3: 1%, 0.01 or 1pt.  [default: 1%]")
    @click.option("--max-p50", type=Duration("ms"), help="What L4 claims, for example 5ms.")
    @functools.wraps(function)
    def wrapper(*args: Any, max_p50: float | None, **kwargs: Any) -> Any:
        return function(*args, max_p50_ms=max_p50, **kwargs)

    return wrapper  # type: ignore[return-value]


@command.command("run")
@_claim_options
@_ladder_options
@click.option(
    "--batch", type=click.Path(path_type=Path, dir_okay=False), help="A list of models (TOML) instead of one."
)
@click.option("--outcome", type=click.Choice(("supported", "delta", "needed")), help="What the gate must say.")
@click.option("--effort", type=click.Choice(("none", "recipe", "family", "shared")), help="What it touches.")
@click.option("--faster", is_flag=True, help="Claim at L4 that it is faster than without the contribution.")
@click.option("--seeds", type=click.IntRange(min=1), default=5, show_default=True, help="For each arm of the gate.")
@data_options(partly=True)
@limit_options
@verb_options
def run(
    model: str | None, batch: Path | None, output: Path, samples: int | None, seed: int | None, out: Output, **said: Any
) -> int:
    """Freeze a claim about MODEL in -o, ask the gate, and climb the ladder to --ceiling without asking.

    The gate: is there anything to contribute? Each arm is built with several seeds in empty stores. The ladder: L0
    structure, L1 runs, L2 parity, L3 task, L4 speed, L5 portable; fail ends it, blocked does not. Every attempt is a
    line of evidence.jsonl. After a kill the same command goes on. Exit 0 where the claim is shown, 1 where it is not
    so, 6 where it is open.
    """
    if batch is not None:
        if model is not None:
            raise UsageError("a list names its models", cause="MODEL and --batch", fix="leave one of them out")
        call = VerbCall("support.batch", batch, output)
        return answer(call, out, Answering(code=_batch_code, progress=kept_lines))
    said["data"] = _drawn(said["data"], samples, seed)
    call = VerbCall("support.run", require_model(model), output, **said)
    return answer(call, out, Answering(code=_run_code, progress=kept_lines))


@command.command("gate")
@_claim_options
@click.option("--seeds", type=click.IntRange(min=1), default=5, show_default=True, help="For each arm.")
@data_options(partly=True)
@limit_options
@verb_options
def gate(model: str | None, output: Path, samples: int | None, seed: int | None, out: Output, **said: Any) -> int:
    """Is there anything to contribute? MODEL without the contribution against with it, by effect.

    no-delta, inert (which fields), delta (owes a proven gain), needed, flaky or blocked. Exit 1 where there is nothing
    to contribute or seeds decide, 6 where nothing was built.
    """
    said["data"] = _drawn(said["data"], samples, seed)
    call = VerbCall("support.gate", require_model(model), output, **said)
    return answer(call, out, Answering(code=_gate_code, progress=kept_lines))


@command.command("ladder")
@_claim_options
@_ladder_options
@data_options(partly=True)
@limit_options
@verb_options
def ladder(model: str | None, output: Path, samples: int | None, seed: int | None, out: Output, **said: Any) -> int:
    """How far MODEL climbs, without asking whether a contribution is needed for it."""
    said["data"] = _drawn(said["data"], samples, seed)
    call = VerbCall("support.run", require_model(model), output, ladder_only=True, **said)
    return answer(call, out, Answering(code=_run_code, progress=kept_lines))


def _drawn(data: Any, samples: int | None, seed: int | None) -> Any:
    if data is None:
        return None
    return mw.Data(**{**vars(data), "samples": samples, "seed": seed or 0})


def _run_code(found: SupportRun) -> int:
    return {True: 0, False: NO, None: CANNOT_TELL}[found.claim_met]


def _gate_code(found: GateResult) -> int:
    contributed = any(arm.name == "with" for arm in found.arms)
    good = ("needed", "delta") if contributed else ("no-delta",)
    return 0 if found.word in good else CANNOT_TELL if found.word == "blocked" else NO


def _batch_code(found: SupportBatch) -> int:
    return next((row.exit_code for row in found.rows if row.exit_code), 0)
