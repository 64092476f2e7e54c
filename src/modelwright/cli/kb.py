"""`wright kb`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

import modelwright as mw
from modelwright._lazy import lazy
from modelwright.cli._call import kept_lines
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._group import CommandGroup
from modelwright.cli._options import Output, model_options, output_options, target_option, write_document
from modelwright.cli._types import Duration

if TYPE_CHECKING:
    from modelwright.report import knowledge as report
    from modelwright.report import render
    from modelwright.vocabulary import Result
else:
    render = lazy("modelwright.report.render")
    report = lazy("modelwright.report.knowledge")

_STATUSES = ("draft", "quarantined", "adopted", "confirmed", "general", "expired", "retracted")


@click.group("kb", cls=CommandGroup)
def command() -> None:
    """What is known about changes on targets: findings, the evidence each rests on, and rules that use them.

    A finding is a draft until a person promotes it. Its scope, effect and rung are computed from its records; another
    version of onnxruntime or of the EP expires it until it is verified again.
    """


@command.command("list")
@click.option("--status", type=click.Choice(_STATUSES), help="Only of this status.")
@click.option("--target", help="Only about this target, for example qnn-npu.")
@click.option("--kind", type=click.Choice(["fact", "hazard", "lesson"]), help="Only of this kind.")
@output_options
def list_(out: Output, **wanted: Any) -> None:
    """Every finding with its status here and now."""
    found = mw.kb.findings(**wanted)
    out.answer("kb list", {"findings": found}, lambda _, console: report.render_findings(found, console))


@command.command("show")
@click.argument("finding")
@output_options
def show(finding: str, out: Output) -> None:
    """One finding: what it claims, why its status is what it is, and what every record observed."""
    found, events = mw.kb.finding(finding), mw.kb.history(finding)
    answer = {"finding": found, "history": events}
    out.answer("kb show", answer, lambda _, console: report.render_finding(found, events, console))


@command.command("lint")
@output_options
def lint(out: Output) -> None:
    """Read every record again and judge its samples anew.

    Exit 1 where evidence is missing or was edited, a pass, axis or target is misspelt, or a status is more than its
    evidence allows.
    """
    found = mw.kb.lint()
    answer = {"clean": found.clean, **found.content()}
    out.answer("kb lint", answer, lambda _, console: report.render_lint(found, console))
    if not found.clean:
        raise click.exceptions.Exit(NO)


@command.command("add")
@click.argument("record")
@click.option("--says", help="The claim in a sentence; default: what the record shows.")
@output_options
def add(record: str, says: str | None, out: Output) -> None:
    """Draft what RECORD of `tune` or `kb verify` shows; what is known already gets it as evidence."""
    found = mw.kb.add(record, says=says)
    out.answer("kb add", {"findings": found}, lambda _, console: report.render_findings(found, console))


@command.command("verify")
@click.argument("finding")
@click.option("--model", type=click.Path(), help="Try it on this model instead of those of the finding.")
@click.option("--budget", "budget_s", type=Duration("s"), default="60s", show_default=True, help="For each race.")
@output_options
def verify(finding: str, out: Output, **said: Any) -> int:
    """Run the experiment of FINDING from scratch on this machine, and keep the outcome as evidence.

    Both sides are built twice. An accelerator places them with its own partitioner (QNN's compiler runs without the
    chip), on a CPU they race under the judge. Exit 1 where a model says the opposite, 6 where nothing is decided.
    """
    with kept_lines(out) as line:
        found = mw.kb.verify(finding, **said, on_progress=line)
    _show(found, out)
    for one in found.experiments:
        if one.record_id is not None:
            out.note(f"record {one.record_id[:12]}")
    return {True: 0, False: NO, None: CANNOT_TELL}[found.reproduced]


@command.command("promote")
@click.argument("finding")
@click.option("--to", type=click.Choice(["confirmed", "general"]), default="confirmed", show_default=True)
@click.option("--by", required=True, help="Who decides.")
@click.option("--reason", required=True, help="Why.")
@output_options
def promote(finding: str, out: Output, **said: Any) -> int:
    """Say that FINDING holds. The checklist is filled in from its evidence; exit 1 where it is not met."""
    found = mw.kb.promote(finding, **said)
    _show(found, out)
    return 0 if found.done else NO


@command.command("retire")
@click.argument("finding")
@click.option("--by", required=True, help="Who decides.")
@click.option("--reason", required=True, help="Why it does not hold.")
@output_options
def retire(finding: str, out: Output, **said: Any) -> None:
    """Say that FINDING does not hold. It stays to be seen with the reason, and steers nothing."""
    found = mw.kb.retire(finding, **said)
    out.answer("kb retire", {"finding": found}, lambda _, console: report.render_findings((found,), console))


@command.command("explain")
@model_options
@target_option
@output_options
def explain(model: str, target: str, out: Output) -> None:
    """What every rule says about changes of MODEL on a target, and why it is used or not."""
    _show(mw.kb.explain(model, target), out)


def _show(found: Result, out: Output) -> None:
    if out.json:
        write_document(found.to_dict())
    else:
        render.render(found, out.console(sys.stdout))
