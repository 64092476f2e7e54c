"""What the building commands share: the folder that is written, and what the answer means."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from modelwright._output import refuse_reserved
from modelwright.cli._call import Answering, VerbCall, answer, told
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._options import Output
from modelwright.errors import UsageError

if TYPE_CHECKING:
    from modelwright.pipeline import Builds

F = TypeVar("F", bound=Callable[..., Any])
_REQUIRED = "modelwright.require_pass"


def folder_options(function: F) -> F:
    """Adds -o/--output, --overwrite and --require-pass."""

    @written_folder_options
    @click.option("--require-pass", is_flag=True, help="Exit 6 when the gate could not judge: no real data.")
    @functools.wraps(function)
    def wrapper(*args: Any, require_pass: bool, **kwargs: Any) -> Any:
        click.get_current_context().meta[_REQUIRED] = require_pass
        return function(*args, **kwargs)

    return wrapper  # type: ignore[return-value]


def written_folder_options(function: F) -> F:
    """Adds -o/--output and --overwrite."""

    @click.option(
        "-o", "--output", type=click.Path(path_type=Path), help="Folder to write: model.onnx and wright.json."
    )
    @click.option("--overwrite", is_flag=True, help="Also write into a folder that holds other files; those stay.")
    @functools.wraps(function)
    def wrapper(*args: Any, output: Path | None, **kwargs: Any) -> Any:
        if output is not None and output.suffix == ".onnx":
            raise UsageError(
                f"{output} is not a folder name",
                cause="a build is a folder: the model, its companions and the manifest",
                fix=f"use -o {output.with_suffix('')}; the model will be {output.with_suffix('') / 'model.onnx'}",
            )
        if output is not None:
            refuse_reserved(output)
        return function(*args, output=output, **kwargs)

    return wrapper  # type: ignore[return-value]


def words(text: str | None) -> tuple[str, ...] | None:
    """What is written with commas between."""
    return None if text is None else tuple(word.strip() for word in text.split(",") if word.strip())


def run_build(command: str, call: VerbCall, out: Output) -> int:
    """Build, print the answer; 1 when a gate failed, 6 when it had to pass and could not judge."""
    return answer(call, out, Answering(command, build_code))


def build_code(found: Builds) -> int:
    """Targets that failed while others were built are complained about now; the first of them decides."""
    several = len(found) + len(found.failed) > 1
    for one in found.failed:
        error = copy.copy(one.error)
        error.problem = f"{one.target}: {error.problem}" if several else error.problem
        told(error)
    if found.failed:
        return found.failed[0].error.exit_code
    undecided = any(build.accuracy is not None and build.accuracy.passed is None for build in found)
    unknown = CANNOT_TELL if undecided or click.get_current_context().meta[_REQUIRED] else 0
    return {True: 0, False: NO, None: unknown}[found.passed]
