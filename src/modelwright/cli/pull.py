"""`wright pull`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelwright.cli._building import written_folder_options
from modelwright.cli._call import VerbCall, answer
from modelwright.cli._completing import precision_names
from modelwright.cli._options import Output, one_target, target_options, verb_options
from modelwright.errors import UsageError

if TYPE_CHECKING:
    from modelwright.targets import Target


@click.command("pull")
@click.argument("feed")
@click.argument("model", required=False)
@target_options
@click.option("--precision", shell_complete=precision_names, help="Which one, where there are several.")
@click.option("--version", help="Which one; by default the newest.")
@written_folder_options
@verb_options
def command(
    feed: str, model: str | None, targets: tuple[Target, ...] | None, precision: str | None, version: str | None,
    output: Path | None, overwrite: bool, out: Output,
) -> int:  # fmt: skip
    """Get one artifact from FEED as a folder, with every file checked by its digest.

    MODEL may be the end of the address: wright pull oci://host/team/org/model. Exit 3 when the feed does not have it, 5
    when the feed cannot be reached, does not let you in, or gives other bytes than were published; then nothing is
    written.
    """
    target = one_target(targets)
    if target is None or output is None:
        what = "--target" if target is None else "-o"
        raise UsageError(f"{what} is missing", cause="one artifact goes to one folder", fix="--target qnn-npu -o DIR")
    said = {"precision": precision, "version": version, "overwrite": overwrite}
    return answer(VerbCall("pull", feed, model, target=target, output=output, **said), out)
