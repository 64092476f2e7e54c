"""Copy-on-write clones: a full copy that costs no time and no space, where the disk can do it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy

if TYPE_CHECKING:
    import ctypes
    import fcntl
else:
    ctypes = lazy("ctypes")
    fcntl = lazy("fcntl")

_FICLONE = 0x40049409


def clone(source: Path, target: Path) -> bool:
    """Whether `target` now is a clone of `source`. False leaves no target behind."""
    cloner = {"linux": _clone_linux, "darwin": _clone_mac}.get(sys.platform)
    return cloner is not None and cloner(source, target)


def _clone_linux(source: Path, target: Path) -> bool:
    try:
        with source.open("rb") as reader, target.open("xb") as writer:
            fcntl.ioctl(writer.fileno(), _FICLONE, reader.fileno())
    except OSError:  # another disk, or one that cannot clone: the caller copies
        target.unlink(missing_ok=True)
        return False
    return True


def _clone_mac(source: Path, target: Path) -> bool:
    if ctypes.CDLL(None).clonefile(os.fsencode(source), os.fsencode(target), 0) != 0:
        return False
    target.chmod(0o644)  # a clone takes the mode too, and blobs are read-only
    return True
