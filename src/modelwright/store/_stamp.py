"""How a file looks from outside, and what that proves about its content.

The system sets a file's change time at every write and nobody can set it back, so a file whose stamp is that of its
last hashing was not written to. Some places keep no such time: FAT repeats the time of the last write, and what
Python calls `st_ctime` is the time of creation on Windows. There a stamp proves nothing, and content is hashed again.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import ctypes
    import msvcrt
else:
    ctypes = lazy("ctypes")
    msvcrt = lazy("msvcrt")

_BASIC_INFO, _CHANGE_TIME = 0, 3
_UNIX_EPOCH = 11_644_473_600 * 10**9


@dataclass(frozen=True)
class Stamp:
    """`changed` is None where the system does not tell."""

    size: int
    modified: int
    changed: int | None
    inode: int

    @property
    def proves(self) -> bool:
        """A change time that is not later than the last write is no change time: every file here was sealed after."""
        return self.changed is not None and self.changed > self.modified

    def __str__(self) -> str:
        return f"{self.size}:{self.modified}:{self.changed}:{self.inode}"


def stamp_of(path: Path) -> Stamp:
    info = path.stat()
    return Stamp(info.st_size, info.st_mtime_ns, change_time(path, info), info.st_ino)


if sys.platform == "win32":

    def change_time(path: Path, info: os.stat_result) -> int | None:
        """NTFS keeps one too, but only this call tells: `FILE_BASIC_INFO`, in steps of 100 ns since 1601."""
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        ask = kernel.GetFileInformationByHandleEx
        ask.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32)
        times = (ctypes.c_int64 * 5)()  # created, accessed, written, changed, attributes
        with path.open("rb") as file:
            told = ask(msvcrt.get_osfhandle(file.fileno()), _BASIC_INFO, ctypes.byref(times), ctypes.sizeof(times))
        return times[_CHANGE_TIME] * 100 - _UNIX_EPOCH if told and times[_CHANGE_TIME] else None

else:

    def change_time(path: Path, info: os.stat_result) -> int | None:
        return info.st_ctime_ns
