"""Names that mean the same file on every system."""

from __future__ import annotations

import re
from pathlib import Path

from modelwright._text import visible

# Windows opens a device for these, whatever follows the first dot.
_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\..*)?", re.IGNORECASE | re.DOTALL)
_FORBIDDEN = re.compile(r'[<>:"|?*\\/]')


def reserved(name: str) -> str | None:
    """Why a file or folder of this name would be another one, or none, on Windows; None when it would not."""
    if _DEVICE.fullmatch(name):
        return "Windows keeps that name for a device"
    if name.endswith((".", " ")) and name not in (".", ".."):
        return "Windows drops dots and spaces at the end of a name"
    return None


def unportable(name: str) -> str | None:
    """The same for files that travel: characters that not every system takes count too."""
    if _FORBIDDEN.search(name) or visible(name) != name:
        return "backslashes, colons, quotes, wildcards and control characters mean different things on other systems"
    return reserved(name)


def near(text: str) -> str:
    """A path without this machine in it: as seen from here, or by its own name. What is no absolute path stays."""
    path = Path(text)
    if not path.is_absolute():
        return text
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else path.name
