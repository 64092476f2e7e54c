"""Standard streams that never crash a command: any encoding, a reader that left, a full disk, a closed descriptor."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from typing import IO, Any

from modelwright._text import visible
from modelwright.errors import StoreError, WrightError

CLOSED_PIPE = 141
"""128 + SIGPIPE, on every system: the reader went away, so the answer did not arrive."""

_WORDS = {
    "→": "->", "←": "<-", "×": "x", "…": "...", "≤": "<=", "≥": ">=", "±": "+/-", "µ": "u", "·": ".", "–": "-",
    "—": "-", "−": "-", "≈": "~", "σ": "sigma", "‘": "'", "’": "'", "“": '"', "”": '"', "•": "*",
}  # fmt: skip
_PROBE = "error: a line that is longer than sixty-four characters, with → and ₿ and \udcff in it\n"


class AnswerLostError(StoreError):
    """Standard output does not take the answer. Nobody is told when the reader simply left (`| head`)."""

    def __init__(self, error: OSError) -> None:
        self.reader_left = error.errno == errno.EPIPE
        super().__init__(
            "the answer cannot be written to standard output",
            cause="it is closed" if error.errno == errno.EBADF else error.strerror or str(error),
            fix="send it to a place that takes it, for example a file on a disk with room",
        )
        if self.reader_left:
            self.exit_code = CLOSED_PIPE


class _Answer(io.TextIOWrapper):
    """Standard output: a write that fails is an error with a name, whoever wrote."""

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError as error:
            raise AnswerLostError(error) from None

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            raise AnswerLostError(error) from None


class _Remarks(io.TextIOWrapper):
    """Standard error: what cannot be said is left unsaid."""

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            return


def prepare() -> None:
    """Call once, before anything is printed or opened."""
    codecs.register_error("wright", _in_words)
    _occupy_closed()
    sys.stdout = _renewed(sys.stdout, 1, _Answer)
    sys.stderr = _renewed(sys.stderr, 2, _Remarks)


def finish(code: int) -> int:
    """Send what is still buffered; `code`, or another where the answer did not arrive."""
    try:
        sys.stdout.flush()
    except AnswerLostError as lost:
        code = report_lost(lost)
    sys.stderr.flush()
    return code


def report_lost(lost: AnswerLostError) -> int:
    """Three lines, except for a reader that left; then standard output leads nowhere, and the last flush is quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if not lost.reader_left:
        complain(lost)
    return lost.exit_code


def complain(error: WrightError) -> None:
    """What happened, why, and what to do next: three lines on stderr."""
    for line in (f"error: {error.problem}", f"  why: {error.cause}", f"  next: {error.fix}"):
        say(line)


def say(text: str) -> None:
    """One line on stderr."""
    sys.stderr.write(visible(text) + "\n")


def write_utf8(text: str) -> None:
    """A document that is UTF-8 by definition, on stdout, whatever the terminal speaks."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    sys.stdout.write(text)


def is_unicode(stream: Any) -> bool:
    return (getattr(stream, "encoding", None) or "").lower().replace("_", "-").startswith("utf")


def _occupy_closed() -> None:
    """A closed descriptor would be given to the next file that is opened, and a child would print into that file."""
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # Reading only for standard output too: writing there must fail, or an answer would be lost in silence.
            os.open(os.devnull, flags)


def _renewed(stream: IO[str] | None, number: int, kind: type[io.TextIOWrapper]) -> io.TextIOWrapper:
    if not isinstance(stream, io.TextIOWrapper):
        return kind(open(number, "wb", closefd=False), encoding="utf-8", errors="wright")
    encoding, lines, through = _usable(stream.encoding), stream.line_buffering, stream.write_through
    return kind(stream.detach(), encoding, "wright", line_buffering=lines, write_through=through)


def _usable(encoding: str) -> str:
    """Some codecs that `PYTHONIOENCODING` accepts cannot write ordinary lines."""
    try:
        readable = _PROBE.encode(encoding, "wright").decode(encoding).startswith("error: a line")
    except (UnicodeError, LookupError):
        readable = False
    return encoding if readable else "ascii"


def _in_words(error: UnicodeError) -> tuple[str, int]:
    """What an encoding lacks: the same in plain letters where there is a way to say it, else its code."""
    assert isinstance(error, UnicodeEncodeError)
    missing = error.object[error.start : error.end]
    coded = (_WORDS.get(char) or char.encode("ascii", "backslashreplace").decode() for char in missing)
    return "".join(coded), error.end
