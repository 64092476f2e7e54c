"""`wright cluster`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelwright._lazy import lazy
from modelwright.cli._cluster import tls_option
from modelwright.cli._group import CommandGroup
from modelwright.cli._options import Output, output_options

if TYPE_CHECKING:
    from modelwright.farm import cluster as farm
else:
    farm = lazy("modelwright.farm.cluster")


@click.group("cluster", cls=CommandGroup)
def command() -> None:
    """Many machines: certificates, the scheduler, and which workers there are.

    docs/cluster.md takes two machines to a cluster.
    """


@command.command("certs")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--name", "names", multiple=True, required=True, help="A machine of the cluster. Repeatable.")
@output_options
def certs(folder: Path, names: tuple[str, ...], out: Output) -> None:
    """Make an authority in FOLDER, once, and a certificate for every machine.

    Copy FOLDER/NAME to that machine and nowhere else; ca-key.pem stays here: who has it can make more of them.
    """
    made = farm.make_certificates(folder, names)
    out.answer("cluster certs", {"made": made}, lambda _, __: click.echo("\n".join(map(str, made))))


@command.command("scheduler")
@click.option("--host", default="0.0.0.0", show_default=True, help="The address to listen on.")
@click.option("--port", type=int, default=8786, show_default=True)
@tls_option
@output_options
def scheduler(host: str, port: int, tls: Path | None, out: Output) -> None:
    """The meeting point of a cluster, until ctrl-C. It keeps nothing."""

    def ready(address: str) -> None:
        out.answer("cluster scheduler", {"address": address}, lambda _, __: click.echo(address))

    farm.serve_scheduler(host=host, port=port, tls=tls, on_ready=ready)


@command.command("workers")
@click.option("--scheduler", "address", required=True, metavar="tls://HOST:PORT", help="The cluster's scheduler.")
@tls_option
@output_options
def workers(address: str, tls: Path | None, out: Output) -> None:
    """Which machines there are, what they announce, and with which versions."""
    with farm.Cluster(address, tls=tls) as found:
        rows = [_row(one) for one in found.workers(fresh=True)]
    out.answer("cluster workers", {"workers": rows}, lambda _, __: _show(rows))


def _row(worker: farm.ClusterWorker) -> dict[str, Any]:
    facts = worker.facts
    eps = sorted(word for word in worker.resources if word.startswith("ep:"))
    head = {"name": worker.name, "system": facts.system, "slots": facts.slots, "eps": eps, "trusts": facts.trusts}
    return {**head, "modelwright": facts.version, "packages": dict(facts.packages)}


def _show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        click.echo(f"{row['name']}  {row['system']}  slots {row['slots']}  {' '.join(row['eps']) or 'builds only'}")
        click.echo("  " + ", ".join(f"{name} {version}" for name, version in row["packages"].items()))
    if not rows:
        click.echo("no worker")
