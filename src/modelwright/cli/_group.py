"""A group of commands whose help says the whole sentence about each of them."""

from __future__ import annotations

import click

_UNCUT = 10_000


class CommandGroup(click.Group):
    """click cuts each sentence to one line of the terminal; here it goes on in the next."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        shown = [(name, one.get_short_help_str(_UNCUT)) for name, one in found if one is not None and not one.hidden]
        if shown:
            with formatter.section("Commands"):
                formatter.write_dl(shown)
