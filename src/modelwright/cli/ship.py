"""`wright ship`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelwright.cli._call import Answering, VerbCall, answer, kept_lines
from modelwright.cli._cluster import on_options
from modelwright.cli._completing import precision_names, runtime_names
from modelwright.cli._data import data_options
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._options import (
    Output,
    dim_option,
    html_option,
    limit_options,
    parse_dims,
    source_options,
    target_options,
    verb_options,
)
from modelwright.cli._types import Duration

if TYPE_CHECKING:
    from modelwright.answers.ship import ShipResult
    from modelwright.targets import Target
    from modelwright.vocabulary import On


@click.command("ship")
@source_options
@target_options
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder of the package.")
@click.option("--overwrite", is_flag=True, help="Also write into a folder that holds other files; those stay.")
@click.option("-r", "--recipe", type=click.Path(path_type=Path), help="Recipe file (TOML or JSON), whole or partial.")
@click.option("--precision", shell_complete=precision_names, help="Of every variant. Default: each target's policy.")
@dim_option
@data_options(partly=True)
@click.option("--max-drop", help="What a variant may lose of the accuracy on labelled --data: 1pt, 1%, 0.01.")
@click.option("--licence", help="The model's licence (SPDX), noted in the package.")
@click.option("--waivers", type=click.Path(path_type=Path), help="TOML: gates that need not hold, why, until when.")
@click.option(
    "--runtime",
    "runtimes",
    multiple=True,
    shell_complete=runtime_names,
    help="Also run every variant, and the selector, in this runtime (`wright runtime list`). Repeatable.",
)
@click.option(
    "--budget",
    "budget_s",
    type=Duration("s"),
    default="60s",
    show_default=True,
    help="Time for each comparison of a variant with the one for CPUs.",
)
@on_options
@limit_options
@verb_options
@html_option
def command(
    model: str,
    targets: tuple[Target, ...] | None,
    dims: tuple[str, ...],
    about: dict[str, Any],
    on: On | None,
    out: Output,
    **said: Any,
) -> int:
    """Make a package of MODEL for users' machines: a variant for each target, and code that picks the right one.

    Every variant is built, checked, opened and run, here and in each --runtime, and compared with the one for CPUs.
    The selectors in the package (Python, C++, C#) need onnxruntime and nothing else: they check each file by its
    digest, take the first variant that the machine can run, and say why. With --on the variants are timed on that
    worker of a cluster, which has the devices; everything else is asked here.

    Six gates: complete with a variant for any CPU, accurate, no slower than that one on its device, real inputs without
    NaN, variants agree, the fallback chain works. Exit 1 when a gate says no or its waiver is over, 6 when one could
    not be asked and is not waived.
    """
    wanted = [str(target) for target in targets or ()] or ["cpu"]
    call = VerbCall("ship", model, wanted, **said, speed_on=on, dims=parse_dims(dims) or None, **about)
    return answer(call, out, Answering(code=_code, progress=kept_lines))


def _code(found: ShipResult) -> int:
    return {True: 0, False: NO, None: CANNOT_TELL}[found.passed]
