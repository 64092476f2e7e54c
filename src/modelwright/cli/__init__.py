"""The command line: parse, call, render. `wright --help` answers from a table, before click is imported."""

import gc
import os
import sys

from modelwright.cli import _streams
from modelwright.cli._commands import HELP_FLAGS, root_help
from modelwright.cli._exits import INTERRUPTED


def main() -> None:
    """Entry point of the `wright` command."""
    _streams.prepare()
    # Nothing that is imported becomes garbage: looking for some after every 700 objects is a tenth of a short command.
    gc.set_threshold(200_000)
    words = sys.argv[1:]
    completing = "_WRIGHT_COMPLETE" in os.environ
    if not completing and (not words or (len(words) == 1 and words[0] in HELP_FLAGS)):
        sys.exit(_streams.finish(_help()))
    try:
        from modelwright.cli._app import run  # noqa: PLC0415 - click costs three interpreter starts
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    code = run(words)
    gc.freeze()  # what is left goes with the process
    raise SystemExit(_streams.finish(code))  # `sys` is by now the module of `wright sys`, if that was asked for


def _help() -> int:
    try:
        sys.stdout.write(root_help())
    except _streams.AnswerLostError as lost:
        return _streams.report_lost(lost)
    return 0


__all__ = ["main"]
