"""Writes docs/commands.md from the code; `--check` fails when the file is out of date."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from modelwright.cli._app import wright
from modelwright.cli._commands import COMMANDS, root_help

PAGE = Path(__file__).with_name("commands.md")


def page() -> str:
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


def main() -> int:
    text = page()
    if "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write("docs/commands.md is out of date: run `make docs`\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
