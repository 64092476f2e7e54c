"""`wright completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from modelwright.cli import _app
from modelwright.cli._options import Output, output_options
from modelwright.cli._powershell import add_powershell

_INSTALL = {
    "bash": "wright completion bash > ~/.local/share/bash-completion/completions/wright",
    "zsh": "wright completion zsh > ~/.zfunc/_wright   (with ~/.zfunc on fpath)",
    "fish": "wright completion fish > ~/.config/fish/completions/wright.fish",
    "powershell": "wright completion powershell >> $PROFILE",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(sorted(_INSTALL)))
@output_options
def command(shell: str, out: Output) -> None:
    """Print the completion script of SHELL on stdout, ready to be saved or sourced."""
    add_powershell()
    kind = get_completion_class(shell)
    assert kind is not None, "click.Choice admits only known shells"
    script = kind(_app.wright, {}, "wright", "_WRIGHT_COMPLETE").source()
    out.note(f"to install: {_INSTALL[shell]}")
    out.answer("completion", {"shell": shell, "script": script}, lambda result, console: click.echo(result["script"]))
