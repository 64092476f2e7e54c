"""A call from the server's side: a child is started, listened to, and ended when nobody waits for it any more."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, Process

from modelwright import _json
from modelwright._dataclass import dataclass
from modelwright._text import visible
from modelwright.mcp._limits import ServerChoices

Tell = Callable[[str, float | None], Awaitable[None]]
_GRACE_S = 20.0
_LONGEST_LINE = 4 << 20
# Isolated: a module that lies in a root is never imported instead of a library.
_CHILD = (sys.executable, "-I", "-X", "utf8", "-c", "from modelwright.mcp._child import main; main()")


@dataclass(frozen=True)
class ToolOutcome:
    """`answer` is the document of the answer, or `error` says what is wrong; `notes` are warnings on the way."""

    answer: dict[str, Any] | None
    error: dict[str, Any] | None
    notes: tuple[str, ...]


async def run_call(choices: ServerChoices, tool: str, arguments: Mapping[str, Any], tell: Tell) -> ToolOutcome:
    """Cancelled, it ends the child as ctrl-C would, and returns when everything below it is gone."""
    order = {"choices": choices, "tool": tool, "arguments": dict(arguments)}
    process = await anyio.open_process(
        _CHILD, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None, cwd=choices.roots[0]
    )
    try:
        assert process.stdin is not None
        await process.stdin.send(_json.canonical(order) + b"\n")
        outcome = await _listen(process, tell)
    finally:
        with anyio.CancelScope(shield=True):
            await _ended(process)
    return outcome


async def _listen(process: Process, tell: Tell) -> ToolOutcome:
    notes: list[str] = []
    assert process.stdout is not None
    async for line in _lines(process.stdout):
        message = _json.loads(line)
        if "progress" in message:
            await tell(message["progress"]["message"], message["progress"]["fraction"])
        elif "note" in message:
            notes.append(message["note"])
        else:
            return ToolOutcome(message.get("answer"), message.get("error"), tuple(dict.fromkeys(notes)))
    code = await process.wait()
    return ToolOutcome(None, _internal(code), tuple(notes))


async def _lines(stream: ByteReceiveStream) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in stream:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line
        if len(rest) > _LONGEST_LINE:
            return


async def _ended(process: Process) -> None:
    """Its end of input is the order to go."""
    if process.stdin is not None:
        await process.stdin.aclose()
    with anyio.move_on_after(_GRACE_S):
        await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()
    await process.aclose()


def _internal(code: int) -> dict[str, Any]:
    return {
        "problem": "the call ended without an answer",
        "cause": visible(f"its process ended with {code}: a fault of modelwright's, or no memory was left"),
        "fix": "the server's own output has the details; other calls are not affected",
        "exit_code": 70,
    }
