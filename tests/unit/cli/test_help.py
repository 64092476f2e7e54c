"""What `wright --help` prints."""

import click
import pytest

from modelwright.cli._app import wright
from modelwright.cli._commands import root_help


def test_the_list_of_commands_fits_80_columns():
    assert [line for line in root_help(with_missing=False).splitlines() if len(line) > 80] == []


def groups():
    context = click.Context(wright)
    found = ((name, wright.get_command(context, name)) for name in wright.list_commands(context))
    return {name: command for name, command in found if isinstance(command, click.Group)}


@pytest.mark.parametrize("name", sorted(groups()))
def test_the_help_of_a_group_cuts_no_sentence_short(name):
    """At 80 columns, of every command in it: the whole first sentence, over as many lines as that takes."""
    group = groups()[name]
    context = click.Context(group, info_name=name, terminal_width=80, max_content_width=80)
    shown = group.get_help(context)
    assert max(map(len, shown.splitlines())) <= 80
    words = " ".join(shown.split())
    for command in group.commands.values():
        assert " ".join(command.get_short_help_str(10_000).split()) in words
    assert "..." not in shown.partition("Commands:")[2]
