"""The process of one call: it reads an order, makes the call, and prints what happens as lines of JSON.

It ends when its input does: that is how a call is cancelled, and how nothing outlives the server.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from modelwright import __version__, _json
from modelwright._text import visible
from modelwright._typed import typed
from modelwright.errors import UsageError, WrightError
from modelwright.mcp._bounded import bounded, part_of
from modelwright.mcp._guard import Guard
from modelwright.mcp._limits import ServerChoices
from modelwright.mcp._tools import VerbTool, find_tool
from modelwright.vocabulary import RESULT_VERSION, Progress, Result

_INTERRUPTED = 130
_LONGEST = 300
Send = Callable[[Mapping[str, Any]], None]


def main() -> None:
    """What anybody else prints, native code too, goes to stderr: stdout is the conversation."""
    wire = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    order = _json.loads(sys.stdin.readline())
    threading.Thread(target=_until_over, daemon=True).start()
    lock = threading.Lock()

    def send(message: Mapping[str, Any]) -> None:
        with lock, contextlib.suppress(BrokenPipeError):
            wire.write(json.dumps(_json.plain(message), allow_nan=False) + "\n")
            wire.flush()

    logging.basicConfig(handlers=[_Notes(send)], level=logging.WARNING)
    try:
        send({"answer": bounded(answered(order, send))})
    except WrightError as error:
        send({"error": _error(error)})
    except KeyboardInterrupt:
        os._exit(_INTERRUPTED)  # everything below was ended on the way here; nobody listens any more


def _until_over() -> None:
    """The server closes our input when nobody wants the answer any more."""
    sys.stdin.read()
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def answered(order: Mapping[str, Any], send: Send) -> dict[str, Any]:
    """The document of the verb's answer."""
    choices, tool = typed(ServerChoices, order["choices"]), find_tool(order["tool"])
    said = dict(order["arguments"])
    guard = Guard(choices)
    at, start, save = (said.pop(name, None) for name in ("at", "start", "save"))
    given = guard.given(tool, said)
    place = None if save is None else guard.path(save)
    watched = "on_progress" in tool.all_parameters()
    more = {"on_progress": lambda one: send({"progress": _told(one)})} if watched else {}
    result = tool.function(**given, **more)
    if place is not None:
        _save(result, tool, str(place))
    return part_of(document_of(tool, result), at, start or 0)


def document_of(tool: VerbTool, result: Any) -> dict[str, Any]:
    """What `--json` prints, for values that are no `Result` too."""
    if isinstance(result, Result):
        return result.to_dict()
    head = {"schema_version": RESULT_VERSION, "command": tool.verb, "tool_version": __version__}
    if tool.verb == "read":
        return {**_json.loads(result.text), "record_id": result.id}
    found = _json.plain(result)
    return {**head, **(found if isinstance(found, dict) else {"rows": found})}


def _save(result: Any, tool: VerbTool, place: str) -> None:
    if not hasattr(result, "save"):
        raise UsageError(f"{tool.name} has nothing to save", cause="its answer is no result", fix="leave `save` out")
    result.save(place)


def _told(progress: Progress) -> dict[str, Any]:
    words = (progress.label, progress.stage, progress.message)
    return {"message": visible(": ".join(word for word in words if word))[:_LONGEST], "fraction": progress.fraction}


def _error(error: WrightError) -> dict[str, Any]:
    return {"problem": error.problem, "cause": error.cause, "fix": error.fix, "exit_code": error.exit_code}


class _Notes(logging.Handler):
    """What a library or a verb warns of goes to whoever called."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        self._send({"note": visible(record.getMessage())[:_LONGEST]})
