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


if sys.platform == "linux":

    def clone(source: Path, target: Path) -> bool:
        """Whether `target` now is a clone of `source`. False leaves no target behind."""
        try:
            with source.open("rb") as reader, target.open("xb") as writer:
                fcntl.ioctl(writer.fileno(), _FICLONE, reader.fileno())
        except OSError:  # another disk, or one that cannot clone: the caller copies
            target.unlink(missing_ok=True)
            return False
        return True

elif sys.platform == "darwin":

    def clone(source: Path, target: Path) -> bool:
        """Whether `target` now is a clone of `source`."""
        if ctypes.CDLL(None).clonefile(os.fsencode(source), os.fsencode(target), 0) != 0:
            return False
        target.chmod(0o644)  # a clone takes the mode too, and blobs are read-only
        return True

else:

    def clone(source: Path, target: Path) -> bool:
        """No clones here."""
        return False
