"""`wright publish`."""

from __future__ import annotations

from pathlib import Path

import click

from modelwright.cli._call import VerbCall, answer
from modelwright.cli._options import Output, verb_options


@click.command("publish")
@click.argument("build", type=click.Path(path_type=Path))
@click.option(
    "--to",
    required=True,
    metavar="FEED",
    help="A folder, oci://HOST/NAME, hf://ORG, s3://BUCKET/PREFIX or az://ORG/PROJECT/FEED.",
)
@click.option("--model", help="What the model is called there. Default: what it was built from.")
@click.option("--version", help="A version of yours, for good. Default: one that stands for the content.")
@click.option("--licence", help="The model's licence (SPDX), noted with the package.")
@verb_options
def command(build: Path, to: str, model: str | None, version: str | None, licence: str | None, out: Output) -> int:
    """Publish BUILD, a folder that a build wrote, to a feed.

    The same content is sent once, and files that the feed has are not sent. It counts as published when the feed has
    confirmed the digest of every file. Exit 5 when the feed cannot be reached or does not let you in, 3 when --version
    stands for other content already.
    """
    return answer(VerbCall("publish", build, to, model=model, version=version, licence=licence), out)
