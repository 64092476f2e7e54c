"""What native code prints: the only place where an EP says why it refuses nodes, and onnxruntime which passes changed
the graph."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator

_TAIL_BYTES = 64 << 10
# File descriptors belong to the whole process; two captures at once would swap their output.
_turn = threading.Lock()
_BROKEN = re.compile(r"GetCapability\(\) for \w+ failed with error: (?P<error>[^\n\x1b]*)")


class CapturedOutput:
    """What the process printed while it was captured."""

    text = ""


@contextlib.contextmanager
def captured_output() -> Iterator[CapturedOutput]:
    """Collect everything written to file descriptors 1 and 2, native code included.

    On an exception the end of it goes to standard error, so the worker's log has it.
    """
    captured = CapturedOutput()
    with _turn, tempfile.TemporaryFile() as file:
        saved = _redirect(file.fileno())
        try:
            yield captured
        except BaseException:
            _restore(saved)
            os.write(2, _read(file.fileno())[-_TAIL_BYTES:])
            raise
        else:
            _restore(saved)
            captured.text = _read(file.fileno()).decode(errors="replace").replace("\r\n", "\n")


def failed_claim(log: str) -> str | None:
    """Why the EP broke while it was asked for its nodes; onnxruntime only logs that and goes on."""
    found = _BROKEN.search(log)
    return None if found is None else " ".join(found["error"].split())


def _redirect(target: int) -> tuple[int, int]:
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    os.dup2(target, 1)
    os.dup2(target, 2)
    return saved


def _restore(saved: tuple[int, int]) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    for number, copy in enumerate(saved, start=1):
        os.dup2(copy, number)
        os.close(copy)


def _read(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    chunks = []
    while chunk := os.read(descriptor, 1 << 20):
        chunks.append(chunk)
    return b"".join(chunks)
