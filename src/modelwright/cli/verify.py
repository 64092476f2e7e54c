"""`wright verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelwright._json import plain
from modelwright._lazy import lazy
from modelwright.cli._exits import NO
from modelwright.cli._options import Output, output_options

if TYPE_CHECKING:
    from modelwright import models
    from modelwright.report import verification as report
else:
    models = lazy("modelwright.models")
    report = lazy("modelwright.report.verification")


@click.command("verify")
@click.argument("folder", type=click.Path(path_type=Path))
@output_options
def command(folder: Path, out: Output) -> int:
    """Is FOLDER, built or pulled, still what was built?

    Its manifest and every file in it are compared with what the build wrote.
    Exit 1 when a file is missing, was changed, or was added; 3 when FOLDER is no build folder.
    """
    found = models.check_build(folder)
    answer = {"whole": found.whole, **plain(found)}
    out.answer("verify", answer, lambda _, console: report.render_check(found, console))
    return 0 if found.whole else NO
