"""The table of tools: a verb of the library each, with the parameters that a caller may give."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import modelwright as mw
from modelwright._dataclass import dataclass
from modelwright.errors import UsageError, did_you_mean

# Of this process, of a cluster, or of a screen: nothing that a caller of a server has.
_WITHHELD = frozenset(
    {"store", "on_progress", "watch", "on", "speed_on", "scheduler", "tls", "runtime", "trace_chrome", "workers"}
)
# What need not hold is for a person to say.
_OF_A_PERSON = frozenset({"waivers"})


@dataclass(frozen=True)
class VerbTool:
    """`verb` is what it is called in the library, where `kb.findings` is a tool `kb_findings`. `writes`: a file, a
    folder or a feed of the caller's can come of it."""

    verb: str
    writes: bool = False

    @property
    def name(self) -> str:
        return self.verb.replace(".", "_")

    @property
    def function(self) -> Callable[..., Any]:
        found: Callable[..., Any] = attrgetter(self.verb)(mw)
        return found

    def all_parameters(self) -> dict[str, inspect.Parameter]:
        return dict(inspect.signature(self.function).parameters)

    def parameters(self) -> dict[str, inspect.Parameter]:
        """What a caller may say, in order."""
        return {
            name: one
            for name, one in self.all_parameters().items()
            if name not in _WITHHELD | _OF_A_PERSON | self._other_catalogue()
        }

    def _other_catalogue(self) -> set[str]:
        return {"folder", "catalogue"} if self.verb in ("find", "site") or self.verb.startswith("catalog.") else set()


_LOOK = ("find", "inspect", "analyze", "plan", "config", "read", "open_build", "verify", "matrix_plan", "matrix_status")
_MEASURE = ("perf", "compare", "evaluate", "debug", "advise", "watch_history")
_KNOWN = ("kb.findings", "kb.finding", "kb.history", "kb.explain", "kb.lint", "kb.verify")
_CATALOG = ("catalog.entries", "catalog.entry", "support.probe")
_MAKE = ("build", "repair", "tune", "sweep", "matrix", "publish", "pull", "catalog.build", "support.run", "site")
_ANSWER = ("diagnose", "ship", "watch")

TOOLS = (
    *(VerbTool(verb) for verb in (*_LOOK, *_MEASURE, *_KNOWN, *_CATALOG)),
    *(VerbTool(verb, writes=True) for verb in (*_MAKE, *_ANSWER)),
)
"""Not among them: what a person decides (`kb.promote`, `kb.retire`, `kb.add`, waivers), and parts of `support.run`."""


def find_tool(name: str) -> VerbTool:
    found = next((tool for tool in TOOLS if tool.name == name), None)
    if found is None:
        names = [tool.name for tool in TOOLS]
        raise UsageError(
            f"no tool '{name}'", cause=f"the tools are {', '.join(names)}", fix=did_you_mean(name, names) or "list them"
        )
    return found
