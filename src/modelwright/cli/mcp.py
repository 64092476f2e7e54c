"""`wright mcp`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelwright._lazy import lazy
from modelwright.cli._options import Output, output_options

if TYPE_CHECKING:
    import rich.console

    from modelwright import mcp
else:
    mcp = lazy("modelwright.mcp")


@click.command("mcp")
@click.option(
    "--root",
    "roots",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    help="A folder under which files may be read and written; repeatable. Relative paths are seen from the first.",
)
@click.option("--trust", is_flag=True, help="Run Python code of callers, options of EPs, and reach other feeds.")
@click.option("--tools", "listing", is_flag=True, help="Print the tools with their schemas, and serve nobody.")
@output_options
def command(roots: tuple[Path, ...], trust: bool, listing: bool, out: Output) -> None:
    """Serve the verbs of the library as tools of the Model Context Protocol, on stdin and stdout.

    For agents. Every call is a process of its own that ends when it is cancelled or the client goes. Records are
    resources. Without --trust no Python of a caller's runs and nothing is sent to another machine.
    """
    choices = mcp.read_choices(roots, trust=trust)
    if listing:
        tools = mcp.offered_tools()
        out.answer("mcp", {"tools": tools}, lambda _, console: _print(tools, console))
        return
    mcp.serve(choices)


def _print(tools: list[dict[str, Any]], console: rich.console.Console) -> None:
    for tool in tools:
        console.print(f"{tool['name']:<16}{tool['description'].partition('.')[0]}")
