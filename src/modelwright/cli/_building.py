"""What the building commands share: options that become wishes, the run with progress, the folder that is written."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from modelwright._lazy import lazy
from modelwright._output import refuse_reserved
from modelwright.cli._options import Output
from modelwright.errors import UsageError

if TYPE_CHECKING:
    from modelwright import pipeline as building
    from modelwright import store as stores
    from modelwright.models import Source
    from modelwright.pipeline import Recipe
    from modelwright.report import build as report
    from modelwright.report import status
    from modelwright.targets import Target
else:
    building = lazy("modelwright.pipeline")
    stores = lazy("modelwright.store")
    report = lazy("modelwright.report.build")
    status = lazy("modelwright.report.status")

F = TypeVar("F", bound=Callable[..., Any])


def folder_options(function: F) -> F:
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


def buildable(source: Source) -> Any:
    """ONNX files and Hugging Face models; a build folder is already built."""
    if hasattr(source, "folder") and not hasattr(source, "architecture"):
        raise UsageError(
            "that is a finished build",
            cause="the folder has a wright.json",
            fix="give the model it was built from, or use it with analyze, perf or compare",
        )
    return source


@dataclass(frozen=True)
class Delivery:
    """Where a build goes, and what may be pushed aside on the way."""

    output: Path | None
    overwrite: bool
    force: bool = False


def run_builds(command: str, jobs: list[tuple[Any, Any]], delivery: Delivery, out: Output) -> int:
    """Build every (source, recipe), write the folders, print the answer; 1 when a gate failed."""
    results, folders = [], [_folder(delivery, recipe, len(jobs)) for _, recipe in jobs]
    with stores.Store() as store, status.StatusLine(out.console(sys.stderr), quiet=out.quiet or out.json) as line:
        for (source, _), folder in zip(jobs, folders, strict=True):
            building.check_folder(source, folder, store=store, overwrite=delivery.overwrite)
        for (source, recipe), folder in zip(jobs, folders, strict=True):
            result = building.build(source, recipe, store=store, on_progress=line, force=delivery.force)
            if folder is not None:
                building.deliver(result, folder, store=store, overwrite=delivery.overwrite)
            results.append(result)
    answer = {"passed": all(result.passed for result in results), "builds": report.documents(results, folders)}
    out.answer(command, answer, lambda _, console: report.render_builds(results, folders, console))
    return 0 if answer["passed"] else 1


def _folder(delivery: Delivery, recipe: Recipe, jobs: int) -> Path | None:
    """The folder itself, or one in it for each target."""
    if delivery.output is None or jobs == 1:
        return delivery.output
    return delivery.output / _slug(recipe.target)


def _slug(target: str) -> str:
    return target.replace(":", "-").replace(",", "-").replace("=", "-")


def only(wanted: tuple[Target, ...]) -> Target:
    if len(wanted) != 1:
        raise UsageError(
            "one target at a time",
            cause="this command makes one artifact",
            fix="use `wright build` for several targets",
        )
    return wanted[0]
