"""Options of everything that works on many machines."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from modelwright.errors import UsageError
from modelwright.vocabulary import On

F = TypeVar("F", bound=Callable[..., Any])


def tls_option(function: F) -> F:
    """Adds --tls."""
    return click.option(
        "--tls",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="MODELWRIGHT_TLS",
        help="Folder of this machine's certificates (also MODELWRIGHT_TLS; default: tls in the home).",
    )(function)


def on_options(function: F) -> F:
    """Adds --on, --scheduler and --tls; hands the command `on`."""

    @click.option("--on", metavar="NAME", help="Do it on this worker of the cluster: by name, or by target.")
    @click.option(
        "--scheduler",
        metavar="tls://HOST:PORT",
        envvar="MODELWRIGHT_SCHEDULER",
        help="Where the cluster of --on is (also MODELWRIGHT_SCHEDULER).",
    )
    @tls_option
    @functools.wraps(function)
    def wrapper(*args: Any, on: str | None, scheduler: str | None, tls: Path | None, **kwargs: Any) -> Any:
        if on is None:
            _refuse_typed("scheduler", "tls")
        return function(*args, on=None if on is None else On(on, scheduler, tls), **kwargs)

    return wrapper  # type: ignore[return-value]


def _refuse_typed(*names: str) -> None:
    """A cluster that is named and not used: the work would be done here, without a word."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"--{name} needs --on", cause="nobody is named to do it there", fix="add --on NAME")


def scheduler_options(function: F) -> F:
    """Adds --scheduler and --tls: the same work on the machines of a cluster."""
    option = click.option("--scheduler", metavar="tls://HOST:PORT", help="Do it on the workers of this cluster.")
    return option(tls_option(function))
