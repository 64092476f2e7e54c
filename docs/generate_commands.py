"""Writes docs/commands.md from the code, docs/support.md from the catalogue; `--check` fails when one is stale."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import click

import modelwright as mw
from modelwright.cli._app import wright
from modelwright.cli._commands import COMMANDS, root_help

HERE = Path(__file__).parent


def commands() -> str:
    parts = [
        "# Commands",
        "",
        "Generated from the code by `make docs`; do not edit.",
        "",
        "```text",
        root_help(with_missing=False).rstrip(),
        "```",
    ]
    root = click.Context(wright, info_name="wright")
    for entry in COMMANDS:
        # Not through the group: what is installed here must not show in the page.
        command: click.Command = importlib.import_module(entry.module).command
        for path, text in _helps(command, root, entry.name):
            parts += ["", f"## {path}", "", "```text", text, "```"]
    return "\n".join(parts) + "\n"


def _helps(command: click.Command, parent: click.Context, name: str) -> Iterator[tuple[str, str]]:
    context = click.Context(command, info_name=name, parent=parent, max_content_width=100, terminal_width=100)
    yield context.command_path, command.get_help(context).rstrip()
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from _helps(found, context, child)


def support() -> str:
    """What is shown of which family, on which target."""
    head = ("family", "task", "target", "precision", "level", "shown on", "entry")
    parts = [
        "# What is supported",
        "",
        "Generated from the [catalogue](catalog.md) by `make docs`; do not edit. A level is what the evidence of an",
        "entry shows; [adding a model](adding-a-model.md) says what each asks for. `wright support list` has the ages.",
        "",
        *(f"| {' | '.join(words)} |" for words in (head, ("---",) * len(head))),
    ]
    for row in mw.catalog.entries():
        level = "bad" if row.known_bad else row.level or "not shown"
        words = (row.family, row.task, row.target, row.precision, level, row.shown_on, f"`{row.entry}`")
        parts.append(f"| {' | '.join(word or '-' for word in words)} |")
    return "\n".join(parts) + "\n"


PAGES = {"commands.md": commands, "support.md": support}


def main() -> int:
    stale = []
    for name, make in PAGES.items():
        path, text = HERE / name, make()
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    for name in stale:
        sys.stderr.write(f"docs/{name} is out of date: run `make docs`\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
