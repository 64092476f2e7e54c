"""`wright watch`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelwright._lazy import lazy
from modelwright._output import check_output, write_output
from modelwright.cli._call import Answering, VerbCall, answer, kept_lines
from modelwright.cli._completing import runtime_names
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._group import CommandGroup
from modelwright.cli._options import Output, html_option, limit_options, verb_options
from modelwright.cli._types import Duration

if TYPE_CHECKING:
    from modelwright.answers.watch import WatchResult
    from modelwright.report import watch as report
else:
    report = lazy("modelwright.report.watch")

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group("watch", cls=CommandGroup)
def command() -> None:
    """Did an upgrade of onnxruntime or of an EP break or slow anything?"""


@command.command("run")
@click.argument("suite", type=_FILE)
@click.option("--old", shell_complete=runtime_names, help="The old side: a runtime, or `here`. Default: the suite's.")
@click.option("--new", shell_complete=runtime_names, help="The new side, likewise.")
@click.option(
    "--budget", "budget_s", type=Duration("s"), help="For the speed of each case; its memory gets half as much."
)
@click.option("--history", type=_FILE, help="Add a line for each case to this file (`wright watch history`).")
@click.option("--junit", type=_FILE, help="Write JUnit XML. Undecided is an error there, never a pass.")
@click.option("--markdown", type=_FILE, help="Write Markdown for a pull request.")
@click.option(
    "--bugs", type=click.Path(path_type=Path, file_okay=False), help="Folder for a bug report per regression."
)
@limit_options
@verb_options
@html_option
def run(suite: Path, junit: Path | None, markdown: Path | None, bugs: Path | None, out: Output, **said: Any) -> int:
    """Run the pinned artifacts of SUITE on an old and a new runtime, side by side.

    Each must still run, answer the same, lie on the same EPs, and is proven to take no more memory and time than the
    suite allows, by turns on this machine. Where it is slower, traces of both sides name the operators. Exit 1 when
    something regressed, 6 when something is undecided: that is never green.
    """
    for path in (junit, markdown):
        check_output(path)

    def written(result: WatchResult) -> None:
        if junit is not None:
            write_output(junit, report.junit(result))
        if markdown is not None:
            write_output(markdown, report.markdown(result))
        if bugs is not None:
            bugs.mkdir(parents=True, exist_ok=True)
            for name, text in report.bug_reports(result).items():
                write_output(bugs / name, text)

    return answer(VerbCall("watch", suite, **said), out, Answering("watch run", _code, written, kept_lines))


@command.command("history")
@click.argument("history", type=_FILE)
@click.option("--alpha", default=0.05, show_default=True, help="Probability of a false change in a series, at most.")
@verb_options
def history(history: Path, alpha: float, out: Output) -> int:
    """Show what HISTORY says about each case, run after run, and where its speed changed its level."""
    return answer(VerbCall("watch_history", history, alpha=alpha), out)


def _code(found: WatchResult) -> int:
    return {True: 0, False: NO, None: CANNOT_TELL}[found.passed]
