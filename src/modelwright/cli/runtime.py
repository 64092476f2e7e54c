"""`wright runtime`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from modelwright._lazy import lazy
from modelwright.cli._completing import runtime_names
from modelwright.cli._group import CommandGroup
from modelwright.cli._options import Output, output_options

if TYPE_CHECKING:
    from modelwright import worker
    from modelwright.report import runtimes as report
else:
    worker = lazy("modelwright.worker")
    report = lazy("modelwright.report.runtimes")


@click.group("runtime", cls=CommandGroup)
def command() -> None:
    """Other interpreters for runtimes that replace onnxruntime.

    Two flavours of onnxruntime cannot share an environment. A runtime is an environment of its own, driven from here.
    """


@command.command("create")
@click.argument("name")
@click.argument("packages", nargs=-1, required=True)
@output_options
def create(name: str, packages: tuple[str, ...], out: Output) -> None:
    """Make the runtime NAME with PACKAGES, for example: openvino onnxruntime-openvino."""
    runtime = worker.create_runtime(name, packages, on_progress=out.tell)
    versions = dict(runtime.versions)
    out.answer(
        "runtime create",
        {"name": runtime.name, "python": runtime.python, "versions": versions},
        lambda result, console: console.print(
            f"runtime {name} is ready: " + ", ".join(f"{package} {version}" for package, version in versions.items()),
            soft_wrap=True,
        ),
    )


@command.command("list")
@output_options
def list_(out: Output) -> None:
    """Every runtime, tried: its interpreter must start and import onnxruntime."""
    out.answer("runtime list", {"runtimes": worker.list_runtimes()}, report.render_runtimes)


@command.command("remove")
@click.argument("name", shell_complete=runtime_names)
@output_options
def remove(name: str, out: Output) -> None:
    """Delete the runtime NAME, also a broken one."""
    worker.remove_runtime(name)
    out.answer("runtime remove", {"removed": name}, lambda _, console: console.print(f"removed runtime {name}"))
