"""The table of commands: what exists, in which group, and what it needs. Standard library only, and little of it."""

from __future__ import annotations

import importlib.util
from typing import NamedTuple

from modelwright._extensions import COMMANDS as ADDED
from modelwright._extensions import extensions

HELP_FLAGS = ("-h", "--help")


class Command(NamedTuple):
    """`module` holds a click command called `command`; `requires` are modules that must be importable."""

    name: str
    module: str
    summary: str
    group: str
    requires: tuple[str, ...] = ()
    extra: str = ""

    @property
    def missing(self) -> str | None:
        """Why this command cannot run here, with the way out, or None."""
        absent = [name for name in self.requires if importlib.util.find_spec(name) is None]
        if not absent:
            return None
        return f"needs {', '.join(absent)}: pip install 'modelwright[{self.extra}]'"


_HF = ("torch", "transformers")
_FARM = ("distributed", "cryptography")


def _command(name: str, group: str, summary: str, requires: tuple[str, ...] = (), extra: str = "") -> Command:
    return Command(name, f"modelwright.cli.{name}", summary, group, requires, extra)


COMMANDS = (
    _command("sys", "Look", "What this machine can target, and why not the rest."),
    _command("inspect", "Look", "What is inside a model: I/O, ops, precision, fingerprint."),
    _command("analyze", "Look", "Which nodes a target really takes, and what would help."),
    _command("diagnose", "Look", "What is wrong, why, and what cures it, tried."),
    _command("find", "Look", "Models for a task on a target, by what is shown of them."),
    _command("build", "Make", "A model to checked artifacts for one or more targets."),
    _command("config", "Make", "Write the resolved recipe of a build."),
    _command("export", "Make", "Hugging Face to ONNX, checked against PyTorch.", _HF, "hf"),
    _command("optimize", "Make", "Run named graph passes; list them; see which ones fire."),
    _command("quantize", "Make", "Fewer bits, measured, compared with the original."),
    _command("compile", "Make", "An EPContext model for one chip, loaded and run."),
    _command("matrix", "Make", "Many models for many targets, published; goes on where it was."),
    _command("catalog", "Make", "Recipes that were shown to work: list, lint, build them."),
    _command("support", "Make", "Adding models: what one needs to be built.", _HF, "hf"),
    _command("perf", "Measure", "How fast a model runs on a target: latency, load, memory, where."),
    _command("compare", "Measure", "Which of several arms is faster than the first, proven."),
    _command("tune", "Measure", "The configuration that is really best on a target, proven."),
    _command("advise", "Measure", "Which precision on which target holds what you need."),
    _command("kb", "Measure", "What is known about changes on targets, with the evidence."),
    _command("debug", "Measure", "Where a quantized model loses accuracy, and the smallest repair."),
    _command("eval", "Measure", "As accurate as its reference? Proven, or what would prove it."),
    _command("watch", "Measure", "Did an upgrade of onnxruntime or an EP break or slow anything?"),
    _command("show", "Measure", "Any earlier answer again, by its record; list, export."),
    _command("site", "Measure", "Everything that is known as static pages, built or served."),
    _command("ship", "Keep", "A package for users' machines that picks its own variant there."),
    _command("publish", "Keep", "A build to a feed, confirmed by its digests."),
    _command("pull", "Keep", "One artifact back from a feed, every file checked."),
    _command("verify", "Keep", "Is a build folder still what was built?"),
    _command("cache", "Keep", "The store: where it is, what it holds, verify and prune it."),
    _command("worker", "Keep", "Work for a cluster with this machine's EPs.", _FARM, "farm"),
    _command("cluster", "Keep", "Many machines: certificates, scheduler, workers.", _FARM, "farm"),
    _command("mcp", "Keep", "The verbs as tools for agents, on files under given roots.", ("mcp",), "mcp"),
    _command("runtime", "Keep", "Other interpreters for runtimes that replace onnxruntime."),
    _command("completion", "Keep", "Print the shell completion script."),
)

OPTIONS = (
    ("--version", "Show the version and exit."),
    ("-h, --help", "Show this message and exit. Works after every command."),
)


def find(name: str) -> Command | None:
    return next((command for command in COMMANDS if command.name == name), None)


def root_help(*, with_missing: bool = True) -> str:
    """The text of `wright --help`; `with_missing` says which commands cannot run in this installation."""
    lines = [
        "Usage: wright COMMAND [OPTIONS]",
        "",
        "  Take a model to the artifact that runs best on a chosen accelerator,",
        "  and prove every claim about it.",
        "",
    ]
    for group in dict.fromkeys(command.group for command in COMMANDS):
        lines.append(f"{group}:")
        lines += [
            _row(command.name, _summary(command) if with_missing else command.summary)
            for command in COMMANDS
            if command.group == group
        ]
        lines.append("")
    added = extensions(ADDED)
    if added:
        lines += [
            "Added:",
            *(_row(name, f"From {found.value.partition('.')[0]}.") for name, found in added.items()),
            "",
        ]
    lines.append("Options:")
    lines += [_row(flags, text) for flags, text in OPTIONS]
    lines += [
        "",
        "Exit codes: 0 good, 1 the answer is no, 2 usage, 3 bad input, 4 runtime",
        "            failure, 5 store or feed unavailable, 6 cannot tell, 70 internal",
        "            error, 128+n ended by signal n. `--json` on every command.",
        "",
    ]
    return "\n".join(lines)


def _summary(command: Command) -> str:
    missing = command.missing
    return f"{command.summary} [unavailable: {missing}]" if missing else command.summary


def _row(left: str, right: str) -> str:
    return f"  {left:<12}{right}"
