"""Files that are written where the user said: there or not, never half, and never in place of anybody else's.

Each holds a seal, a digest of all the rest. So a file that stands in the way is known to be ours, unchanged, and can
be replaced; anything else is refused. An editor that changes the ends of lines does not break a seal.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from pathlib import Path

from modelwright._disk import disk_errors
from modelwright._filenames import reserved
from modelwright.errors import UsageError

SEAL = "wright-seal:" + "0" * 64
"""To be put somewhere into the text that is written; a comment, or a field called `seal`."""

_SEAL = re.compile(rb"wright-seal:([0-9a-f]{64})")
_LARGEST = 1 << 30
_STALE_S = 3600.0


def sealed(text: str) -> bytes:
    """The bytes to write: the `SEAL` in the text becomes the digest of the text."""
    data = text.encode()
    assert SEAL in text, "a text without a seal could never be replaced"
    return data.replace(SEAL.encode(), b"wright-seal:" + _digest(data))


def is_sealed(data: bytes) -> bool:
    """Whether these are the bytes that `sealed` made, to the last one."""
    return _digest(data) in _SEAL.findall(data)


def check_output(path: Path | None) -> None:
    """Find out before the work that its result could not be written there."""
    if path is None:
        return
    refuse_reserved(path)
    folder = path.resolve().parent
    if _is_stream(path):
        return
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(
            f"the result cannot be written to {path}",
            cause="it is a folder" if path.is_dir() else f"{folder} is no folder that can be written to",
            fix="give a file in an existing folder",
        )
    if path.is_file() and not _is_ours(path):
        raise UsageError(
            f"{path} stays as it is",
            cause="wright did not write it, or it was changed since",
            fix="give another name, or move that file away first",
        )


def refuse_reserved(path: Path) -> None:
    """A name that Windows takes for a device, or changes, is refused everywhere: results travel."""
    why = reserved(path.name)
    if why is not None:
        raise UsageError(f"{path} is no name for a result", cause=why, fix="choose another name")


def write_output(path: Path, text: str) -> None:
    """Write text with a seal in it. A link is followed; a device or a pipe is written to as it is."""
    check_output(path)
    _replace(path, sealed(text))


def write_new(path: Path, text: str) -> None:
    """Write text that has no room for a seal, a table of numbers for example: only where nothing stands yet."""
    check_output(path)
    if path.is_file() and path.stat().st_size:
        raise UsageError(f"{path} stays as it is", cause="there is a file already", fix="give another name")
    _replace(path, text.encode())


def _replace(path: Path, data: bytes) -> None:
    target = path.resolve()
    with disk_errors(target.parent, f"write {path}"):
        if _is_stream(path):
            path.write_bytes(data)
            return
        _forget_drafts(target)
        draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
        try:
            _write(draft, data)
            draft.replace(target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _is_stream(path: Path) -> bool:
    """A device or a pipe."""
    return path.exists() and not path.is_dir() and not path.is_file()


def _is_ours(path: Path) -> bool:
    """An empty file holds nothing that could be lost."""
    size = path.stat().st_size
    return size == 0 or (size <= _LARGEST and is_sealed(path.read_bytes()))


def _forget_drafts(target: Path) -> None:
    """What processes that were killed while they wrote left here."""
    for draft in target.parent.glob(f".{_literal(target.name)}.*.draft"):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > _STALE_S:
                draft.unlink()


def _literal(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


def _digest(data: bytes) -> bytes:
    plain = _SEAL.sub(SEAL.encode(), data).replace(b"\r\n", b"\n")
    return hashlib.sha256(plain).hexdigest().encode()
