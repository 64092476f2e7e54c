"""What a server was started with: where it may read and write, and whether it may run code of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright.errors import UsageError


@dataclass(frozen=True)
class ServerChoices:
    """`roots` are whole paths with links followed; relative paths of a caller are seen from the first."""

    roots: tuple[str, ...]
    trust: bool = False


def read_choices(roots: Sequence[str | Path], *, trust: bool = False) -> ServerChoices:
    """Folders that exist; the same one twice counts once."""
    if not roots:
        raise UsageError("no `root` is given", cause="nothing may be read or written without one", fix="give a folder")
    found = [_folder(Path(root)) for root in roots]
    return ServerChoices(tuple(dict.fromkeys(found)), trust)


def _folder(root: Path) -> str:
    place = root.expanduser().resolve()
    if not place.is_dir():
        raise UsageError(f"{root} is no folder", cause="a `root` is a folder that exists", fix="check the path")
    return str(place)
