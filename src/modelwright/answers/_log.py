"""What a log says: every line that speaks of an error is looked up in the catalogue, or said to be unknown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright._installed import installed
from modelwright.answers._errors import ErrorText, error_texts
from modelwright.errors import InputError

_LONGEST = 4000
_SHOWN = 400
_LARGEST = 256 << 20
_SOUNDS_WRONG = re.compile(
    r"\b(error|errors|fail|fails|failed|failure|exception|fatal|cannot|can't|could ?n[o']t|unable|abort(ed)?"
    r"|segmentation fault|core dumped|not supported|unsupported|out of memory|terminate called|invalid|panic\w*)\b"
    r"|\w+(Error|Exception)\b|\[E:\w+|<E>",
    re.IGNORECASE,
)
# Where a traceback stands, and code that it quotes.
_NOISE = re.compile(r'^\s*(File "|at [\w.$<>]+\(|\^+\s*$|raise \w|except \w|#\d+ 0x|Traceback )|^\s*[\w.]+\($')
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class LogCause:
    """An error that the catalogue knows. `line` is where it was met first, counted from 1. `known_of` are the versions
    that the sources report it of, and the one that is installed here. `rules` are the causes of `diagnose` that fit."""

    id: str
    about: str
    line: int
    text: str
    times: int
    cause: str
    next: str
    sources: tuple[str, ...]
    known_of: str | None
    wraps: bool
    rules: tuple[str, ...]


@dataclass(frozen=True)
class LogLine:
    line: int
    text: str
    times: int


@dataclass(frozen=True)
class LogReading:
    """What explains comes before what only says where; else in the order of the log. `unknown` are lines that sound
    like an error and that the catalogue does not have."""

    file: str
    lines: int
    causes: tuple[LogCause, ...]
    unknown: tuple[LogLine, ...]

    @property
    def explained(self) -> bool:
        return any(not cause.wraps for cause in self.causes)


def read_log(path: Path) -> LogReading:
    """The log in a file, in whatever encoding Windows or Linux wrote it."""
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(
                f"{path} is too large for a log", cause=f"above {_LARGEST >> 20} MiB", fix="cut its end off"
            )
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}", cause=error.strerror or str(error), fix="check `log`") from None
    return read_lines(_decoded(data).splitlines(), str(path))


def read_lines(lines: Iterable[str], file: str = "") -> LogReading:
    """The same for lines; a line above a few thousand characters is cut."""
    causes: dict[str, LogCause] = {}
    unknown: dict[str, LogLine] = {}
    times: Counter[str] = Counter()
    count = 0
    for number, whole in enumerate(lines, 1):
        count, line = number, _ANSI.sub("", whole[:_LONGEST]).strip()
        entry = _entry(line)
        if entry is not None:
            cause = _cause(entry, line, number)
            key = f"{entry.id} {cause.cause}"
            causes.setdefault(key, cause)
            times[key] += 1
        elif _SOUNDS_WRONG.search(line) and not _NOISE.search(line):
            key = re.sub(r"\d+", "0", line)
            unknown.setdefault(key, LogLine(number, line[:_SHOWN], 1))
            times[key] += 1
    ordered = sorted(causes.items(), key=lambda item: (item[1].wraps, item[1].line))
    known = tuple(replace(cause, times=times[key]) for key, cause in ordered)
    return LogReading(file, count, known, tuple(replace(line, times=times[key]) for key, line in unknown.items()))


def _entry(line: str) -> ErrorText | None:
    """What explains is looked for before what wraps it: both are often in one line."""
    return next(_entries(line, wraps=False), None) or next(_entries(line, wraps=True), None)


def _entries(line: str, *, wraps: bool) -> Iterator[ErrorText]:
    return (entry for entry in error_texts() if entry.wraps == wraps and entry.found(line))


def _cause(entry: ErrorText, line: str, number: int) -> LogCause:
    match = entry.found(line)
    assert match is not None
    cause, then = entry.words(match)
    known = None if entry.versions is None else _known_of(*entry.versions)
    return LogCause(
        entry.id, entry.about, number, line[:_SHOWN], 1, cause, then, entry.sources, known, entry.wraps, entry.rules
    )


def _known_of(package: str, oldest: str, newest: str) -> str:
    span = oldest if oldest == newest else f"{oldest} to {newest}"
    here = installed(package)
    return f"reported of {package} {span}" + (f"; here is {here}" if here else "")


def _decoded(data: bytes) -> str:
    """PowerShell writes UTF-16; with its mark or without."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    head = data[:4096]
    if head.count(0) > len(head) // 4:
        return data.decode("utf-16-le", "replace")
    return data.decode("utf-8-sig", "replace")
