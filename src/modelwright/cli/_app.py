"""The click group, and the one place where errors become exit codes."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import traceback
from typing import Any

import click

from modelwright import __version__
from modelwright._json import dumps
from modelwright.cli._commands import COMMANDS, find, root_help
from modelwright.cli._exits import INTERRUPTED
from modelwright.errors import ExecutionError, UsageError, WrightError, did_you_mean

SCHEMA_VERSION = 1


class LazyGroup(click.Group):
    """Imports a command's module when that command is asked for, and says why when it cannot."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [command.name for command in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = find(cmd_name)
        if entry is None:
            return None
        missing = entry.missing
        if missing is not None:
            return _unavailable(cmd_name, missing)
        command: click.Command = importlib.import_module(entry.module).command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if find(args[0]) is None and not args[0].startswith("-"):
            names = [command.name for command in COMMANDS]
            raise UsageError(
                f"no command '{args[0]}'",
                cause=f"the commands are {', '.join(names)}",
                fix=did_you_mean(args[0], names) or "run `wright --help`",
            )
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        return root_help().rstrip("\n")


def _unavailable(name: str, missing: str) -> click.Command:
    def refuse() -> None:
        raise ExecutionError(
            f"'{name}' is not available in this installation",
            cause=missing.partition(":")[0],
            fix=missing.partition(": ")[2],
        )

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=refuse, short_help=f"[unavailable: {missing}]", context_settings=settings)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="wright")
def wright() -> None:
    """Take a model to the artifact that runs best on a chosen accelerator."""


def run(words: list[str]) -> int:
    """Run one command line and return its exit code."""
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s: %(message)s", level=logging.WARNING)
    try:
        return int(wright.main(args=words, prog_name="wright", standalone_mode=False) or 0)
    except WrightError as error:
        return _report(error, words)
    except click.UsageError as error:
        return _report(_from_click(error), words)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, click.Abort):
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) went away; point stdout elsewhere so the interpreter's final flush is quiet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _from_click(error: click.UsageError) -> UsageError:
    where = error.ctx.command_path if error.ctx else "wright"
    possible = getattr(error, "possibilities", None)
    return UsageError(
        f"cannot run '{where}'",
        cause=error.format_message().rstrip("."),
        fix=f"did you mean {' or '.join(possible)}?" if possible else f"run `{where} --help`",
    )


def _report(error: WrightError, words: list[str]) -> int:
    sys.stderr.write(f"error: {error.problem}\n  why: {error.cause}\n  next: {error.fix}\n")
    if "-vv" in words:
        traceback.print_exception(error, file=sys.stderr)
    if "--json" in words:
        detail = {"problem": error.problem, "cause": error.cause, "fix": error.fix}
        document = {"schema_version": SCHEMA_VERSION, "exit_code": error.exit_code, "error": detail}
        sys.stdout.write(dumps(document) + "\n")
    return error.exit_code
