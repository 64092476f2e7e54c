"""A fault of ours: three lines for the user, and everything a developer needs in a log file."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import tempfile
import time
import traceback
from pathlib import Path

from modelwright import __version__
from modelwright._installed import installed
from modelwright._text import visible_lines
from modelwright.cli._exits import INTERNAL
from modelwright.errors import WrightError
from modelwright.home import logs_dir

_LIBRARIES = ("click", "rich", "numpy", "onnx", "onnxruntime", "torch", "transformers")
_LONGEST = 300


class InternalError(WrightError):
    """Not the user's doing."""

    exit_code = INTERNAL


def internal(error: BaseException, words: list[str]) -> InternalError:
    """`error` as three lines, with its traceback in a log."""
    log = _write_log(_account(error, words))
    shown = str(error)
    what = f"{type(error).__name__}: {shown[:_LONGEST]}" if shown else type(error).__name__
    return InternalError(
        f"internal error: {what}",
        cause="a fault of modelwright's, not of your input"
        + (f"; details in {log}" if log else "; no log could be written"),
        fix=f"report it with {'the log' if log else 'what -vv prints'}; other inputs and commands are not affected",
    )


def _account(error: BaseException, words: list[str]) -> str:
    versions = ", ".join(f"{name} {version}" for name in _LIBRARIES if (version := installed(name)))
    return visible_lines(
        f"modelwright {__version__}, Python {sys.version.split()[0]}, {platform.platform()}\n"
        f"{versions}\n"
        f"arguments: {words!r}\n"
        f"{''.join(traceback.format_exception(error))}"
    )


def _write_log(text: str) -> Path | None:
    name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-internal-{os.getpid()}.log"
    for folder in (logs_dir(), Path(tempfile.gettempdir())):
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / name
            path.write_text(text, encoding="utf-8")
            return path
    return None
