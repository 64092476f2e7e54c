"""`wright cache`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from modelwright._lazy import lazy
from modelwright.cli._exits import NO
from modelwright.cli._group import CommandGroup
from modelwright.cli._options import Output, output_options
from modelwright.cli._types import Duration, Size
from modelwright.errors import UsageError
from modelwright.home import HOME_VARIABLE, home

if TYPE_CHECKING:
    from modelwright import store as stores
    from modelwright.report import store as report
else:
    stores = lazy("modelwright.store")
    report = lazy("modelwright.report.store")


@click.group("cache", cls=CommandGroup)
def command() -> None:
    """The store: where it is, what it holds, verify and prune it.

    Everything the tool keeps lives under one folder; MODELWRIGHT_HOME moves it.
    """


@command.command("path")
@output_options
def path(out: Output) -> None:
    """Where everything is kept."""
    answer = {"home": home(), "store": stores.Store().root, "moved_by": HOME_VARIABLE}
    out.answer("cache path", answer, lambda result, _: click.echo(result["home"]))


@command.command("ls")
@click.option("--all", "every", is_flag=True, help="Every entry, not only the hundred used last.")
@output_options
def ls(every: bool, out: Output) -> None:
    """What the store holds, least recently used first."""
    with stores.Store() as store:
        found = {"entries": store.entries(None if every else report.SHOWN), "stats": store.stats()}
        out.answer("cache ls", found, report.render_entries)


@command.command("info")
@click.argument("key")
@output_options
def info(key: str, out: Output) -> None:
    """The files and notes of one entry; KEY is the beginning of its key, as `ls` shows it."""
    with stores.Store() as store:
        entry = store.find(key)
        artifact = store.get(entry.key)
        answer = {
            "entry": entry,
            "files": artifact.files if artifact else None,
            "meta": artifact.meta if artifact else None,
        }
        out.answer("cache info", answer, report.render_artifact)
    if artifact is None:
        raise click.exceptions.Exit(NO)


@command.command("verify")
@output_options
def verify(out: Output) -> None:
    """Hash everything again. Damaged files are set aside and rebuilt when next asked for; exit 1 if there were any."""
    with stores.Store() as store:
        found = store.verify()
    out.answer("cache verify", found, report.render_verification)
    if not found.clean:
        raise click.exceptions.Exit(NO)


@command.command("prune")
@click.option("--budget", type=Size(), help="Shrink to this size, least recently used first, for example 20GB.")
@click.option("--older-than", type=Duration(), help="Remove what was not used for so long, for example 30d.")
@click.option("--records", is_flag=True, help="Remove records too, which cannot be made again (`wright show --list`).")
@click.option("--dry-run", is_flag=True, help="Say what would go, remove nothing.")
@output_options
def prune(budget: int | None, older_than: float | None, records: bool, dry_run: bool, out: Output) -> None:
    """Make the store smaller. What a running build uses always stays, and so do records unless --records is given."""
    if (budget is None) == (older_than is None):
        raise UsageError(
            "prune needs exactly one limit",
            cause="it never guesses what you can spare",
            fix="give --budget 20GB or --older-than 30d",
        )
    with stores.Store() as store:
        if budget is not None:
            found = store.gc(budget, dry_run=dry_run, records=records)
        else:
            assert older_than is not None
            found = store.prune(older_than_s=older_than, dry_run=dry_run, records=records)
    out.answer("cache prune", found, report.render_gc)
