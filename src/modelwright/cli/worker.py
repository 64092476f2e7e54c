"""`wright worker`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelwright._lazy import lazy
from modelwright.cli._cluster import tls_option
from modelwright.cli._options import Output, output_options

if TYPE_CHECKING:
    from modelwright.api import lent
    from modelwright.farm import cluster
else:
    cluster = lazy("modelwright.farm.cluster")
    lent = lazy("modelwright.api.lent")


@click.command("worker")
@click.option("--scheduler", required=True, metavar="tls://HOST:PORT", help="The cluster's scheduler.")
@click.option("--name", help="What the cluster calls this machine; default: its host name.")
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="ep:TARGET",
    help="Announce these instead of what a probe of this machine finds, for example ep:qnn-npu. Repeatable.",
)
@click.option("--slots", type=click.IntRange(1), default=1, show_default=True, help="How many nodes run at once.")
@click.option("--trust", is_flag=True, help="Run Python code that comes with a model, or with --on.")
@tls_option
@output_options
def command(
    scheduler: str, name: str | None, resources: tuple[str, ...], slots: int, trust: bool, tls: Path | None, out: Output
) -> None:
    """Work for a cluster until ctrl-C: this machine's EPs, its own store.

    It runs the stages and the measurements (--on) of its own modelwright on models it is sent by digest, and nothing
    else. What it makes goes back to whoever asked, and stays in this machine's store.
    """

    def ready(found: Mapping[str, float]) -> None:
        out.answer("worker", {"scheduler": scheduler, "resources": dict(found)}, lambda _, __: click.echo(words(found)))

    choices = cluster.WorkerChoices(name, resources, slots, trust)
    cluster.serve_worker(scheduler, choices, tls=tls, lender=lent.answer_verb, on_ready=ready)


def words(found: Mapping[str, float]) -> str:
    eps = sorted(word for word in found if word.startswith("ep:"))
    return f"at work: {' '.join(eps) or 'builds only, no EP beside the CPU'}"
