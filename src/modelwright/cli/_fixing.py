"""The options of `wright debug --fix`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from modelwright.cli._building import folder_options
from modelwright.cli._completing import data_names, files, precision_names
from modelwright.cli._types import Duration, Finite
from modelwright.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
_ABOUT = ("target_sqnr", "target_drop", "metric", "precision", "calibrated_on", "save_recipe", "output", "budget_s")


def fix_options(function: F) -> F:
    """Adds --fix and what belongs to it; hands the command `repair`: what was said about it, or None."""

    @click.option("--fix", is_flag=True, help="Find the cheapest change that makes it good enough, and build that.")
    @click.option("--target-sqnr", type=Finite(), help="--fix until every output has this SQNR, in dB.")
    @click.option("--target-drop", help="--fix until the metric loses no more: 1% of float's, 0.01 or 1pt.")
    @click.option(
        "--metric",
        shell_complete=files,
        help="For --target-drop: file.py:function of (outputs, row). Default: top-1 of `label`.",
    )
    @click.option(
        "--raise",
        "raise_to",
        type=click.Choice(["auto", "16bit", "float"]),
        default="auto",
        show_default=True,
        help="What --fix raises nodes to; auto tries what suits the target.",
    )
    @click.option(
        "--precision",
        shell_complete=precision_names,
        help="For --fix without a build folder: what the quantized model is.",
    )
    @click.option(
        "--calibrated-on",
        shell_complete=data_names,
        help="For --fix: the data of the quantized model, or where a build's data is now.",
    )
    @click.option("--save-recipe", type=click.Path(path_type=Path, dir_okay=False), help="Write --fix's recipe (TOML).")
    @click.option("--budget", "budget_s", type=Duration(), help="For --fix: the time to spend at most, like 10m.")
    @folder_options
    @functools.wraps(function)
    def wrapper(*args: Any, fix: bool, **kwargs: Any) -> Any:
        repair = {name: kwargs.pop(name) for name in (*_ABOUT, "raise_to", "overwrite")}
        said = [name for name in _ABOUT if repair[name] is not None]
        if said and not fix:
            raise UsageError(
                f"--{said[0].removesuffix('_s').replace('_', '-')} needs --fix",
                cause="it says how to repair",
                fix="add --fix, or leave it out",
            )
        return function(*args, repair=repair if fix else None, **kwargs)

    return wrapper  # type: ignore[return-value]
