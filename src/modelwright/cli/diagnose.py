"""`wright diagnose`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelwright.cli._call import Answering, VerbCall, answer
from modelwright.cli._exits import CANNOT_TELL, NO
from modelwright.cli._options import Output, html_option, optional_model, verb_options

if TYPE_CHECKING:
    from modelwright.answers import Diagnosis

_CODES = {True: 0, False: NO, None: CANNOT_TELL}


@click.command("diagnose")
@optional_model
@click.option("--log", type=click.Path(path_type=Path), help="A log with error texts: each is looked up.")
@verb_options
@html_option
def command(model: str | None, log: Path | None, out: Output) -> int:
    """What is wrong, why, and what cures it.

    With --log: the error texts of onnxruntime, QNN, OpenVINO, DirectML, CUDA and TensorRT in a file, each with what it
    means, the next step and the public threads that it is known from. What is not in the catalogue is said to be
    unknown. Exit 1 when a cause was found, 6 when something is wrong and no cause is known, 0 when nothing is.
    """
    return answer(VerbCall("diagnose", model, log=log), out, Answering(code=_code))


def _code(found: Diagnosis) -> int:
    return _CODES[found.healthy]
