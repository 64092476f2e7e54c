"""Options of everything that works on many machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def tls_option(function: F) -> F:
    """Adds --tls."""
    return click.option(
        "--tls",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="MODELWRIGHT_TLS",
        help="Folder of this machine's certificates (also MODELWRIGHT_TLS; default: tls in the home).",
    )(function)


def scheduler_options(function: F) -> F:
    """Adds --scheduler and --tls: the same work on the machines of a cluster."""
    option = click.option("--scheduler", metavar="tls://HOST:PORT", help="Do it on the workers of this cluster.")
    return option(tls_option(function))
