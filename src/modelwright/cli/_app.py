"""The click group, and the one place where errors become exit codes."""

from __future__ import annotations

import importlib
import logging
import os
import re
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelwright import __version__
from modelwright._call import spoken
from modelwright._disk import DENIED, disk_error, lacks_room
from modelwright._extensions import COMMANDS as ADDED
from modelwright._extensions import extensions, load_extension
from modelwright._lazy import lazy
from modelwright._text import visible, visible_lines
from modelwright.cli._commands import COMMANDS, find, root_help
from modelwright.cli._flags import with_flags
from modelwright.cli._options import SCHEMA_VERSION, write_document
from modelwright.cli._renamed import renamed
from modelwright.cli._signals import Ending
from modelwright.cli._streams import AnswerLostError, complain, report_lost
from modelwright.errors import ExecutionError, UsageError, WrightError, did_you_mean
from modelwright.home import HOME_VARIABLE, home

if TYPE_CHECKING:
    from modelwright.cli import _internal, _powershell
else:
    _internal = lazy("modelwright.cli._internal")
    _powershell = lazy("modelwright.cli._powershell")


class LazyGroup(click.Group):
    """Imports a command's module when that command is asked for, and says why when it cannot."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*(command.name for command in COMMANDS), *extensions(ADDED)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = find(cmd_name)
        if entry is None:
            return load_extension(ADDED, cmd_name, click.Command) if cmd_name in extensions(ADDED) else None
        missing = entry.missing
        if missing is not None:
            return _unavailable(cmd_name, missing)
        command: click.Command = importlib.import_module(entry.module).command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        names = self.list_commands(ctx)
        if find(args[0]) is None and args[0] not in names and not args[0].startswith("-"):
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
    _log_to_stderr()
    if "_WRIGHT_COMPLETE" in os.environ:
        _powershell.add_powershell()
        wright.main(args=words, prog_name="wright")
    with Ending() as ending:
        try:
            return _run(words, ending)
        except AnswerLostError as lost:
            return report_lost(lost)
        except KeyboardInterrupt:
            # Another signal while the first was being answered.
            return ending.exit_code


def _run(words: list[str], ending: Ending) -> int:
    try:
        _require_text(words)
        spoken.set(tuple(words))
        with wright.make_context("wright", list(words)) as context:
            return int(wright.invoke(context) or 0)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _interrupted(ending)
    except AnswerLostError:
        raise
    # The one place where everything ends; a library that calls sys.exit has failed too.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        # A child that got the same signal may have died of it first.
        return _interrupted(ending) if ending.number is not None else _report(error, words)


def _require_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - Path.cwd() is the same call and a longer traceback
    except OSError as error:
        raise UsageError(
            "the current folder is gone", cause=error.strerror or str(error), fix="change to one that exists"
        ) from None


def _require_text(words: list[str]) -> None:
    """onnxruntime opens no file whose name is not text, and neither JSON nor a key can hold one."""
    said = [(f"the argument {word}", word) for word in words]
    for what, text in (
        *said,
        ("the current folder", _require_folder()),
        ("the home folder", os.environ.get(HOME_VARIABLE, "")),
    ):
        if re.search("[\ud800-\udfff]", text):
            raise UsageError(
                f"{what} is not valid text", cause="a name in it is not UTF-8", fix="rename that file or folder"
            )


def _interrupted(ending: Ending) -> int:
    sys.stderr.write("interrupted\n")
    return ending.exit_code


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine("%(levelname)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


class _OneLine(logging.Formatter):
    """What a library or a child wants to say cannot move the cursor."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = visible(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:
        return visible_lines(super().formatException(ei))


def _as_wright(error: BaseException, words: list[str]) -> WrightError:
    if isinstance(error, WrightError):
        return error
    if isinstance(error, click.UsageError):
        return _from_click(error)
    if isinstance(error, OSError) and (lacks_room(error) or error.errno in DENIED):
        where = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else home()
        return disk_error(error, where, f"use {where}")
    return _internal.internal(error, words)


def _typed(words: list[str]) -> click.Command | None:
    """The command whose options the user knows."""
    entry = find(words[0]) if words else None
    module = sys.modules.get(entry.module) if entry is not None else None
    command: click.Command | None = None if module is None else module.command
    for word in words[1:]:
        command = command.commands.get(word, command) if isinstance(command, click.Group) else command
    return command


def _from_click(error: click.UsageError) -> UsageError:
    where = error.ctx.command_path if error.ctx else "wright"
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and isinstance(error.ctx.command, click.Group):
        words = error.ctx.command.list_commands(error.ctx)
        return UsageError(f"'{where}' alone does nothing", cause=f"it has {', '.join(words)}", fix=_fix(error, where))
    return UsageError(
        f"cannot run '{where}'",
        cause=error.format_message().partition(" Did you mean")[0].rstrip("."),
        fix=_fix(error, where),
    )


def _fix(error: click.UsageError, where: str) -> str:
    if isinstance(error, click.NoSuchOption) and (instead := renamed(where.rpartition(" ")[2], error.option_name)):
        return f"use {instead}"
    possible = getattr(error, "possibilities", None)
    return f"did you mean {' or '.join(possible)}?" if possible else f"run `{where} --help`"


def _report(error: BaseException, words: list[str]) -> int:
    told = with_flags(_as_wright(error, words), _typed(words))
    complain(told)
    if any(re.fullmatch("-vv+", word) for word in words) or words.count("-v") > 1:
        sys.stderr.write(visible_lines("".join(traceback.format_exception(error))))
    if "--json" in words:
        detail = {"problem": told.problem, "cause": told.cause, "fix": told.fix}
        write_document({"schema_version": SCHEMA_VERSION, "exit_code": told.exit_code, "error": detail})
    return told.exit_code
