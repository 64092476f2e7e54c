"""What the journal says about an entry, a second time, as one small file: a damaged journal is rebuilt from these.

They are never flushed. One that is lost or torn (its seal tells) costs the entry, not a wrong answer: its content is
checked at every hit, whoever listed it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from modelwright import _json
from modelwright._dataclass import dataclass
from modelwright._output import SEAL, is_sealed, sealed
from modelwright.store import _fs
from modelwright.store._key import Key
from modelwright.store._types import Entry, blob_path

FOLDER = "entries"


@dataclass(frozen=True)
class EntryNote:
    """`blobs` are the digests and sizes of all content of the entry, the manifest included."""

    entry: Entry
    blobs: Mapping[str, int]


class Notes:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = root / FOLDER

    def write(self, note: EntryNote) -> None:
        text = _json.dumps({"entry": note.entry, "blobs": note.blobs, "seal": SEAL})
        _fs.write_file(self._folder / note.entry.key.digest, sealed(text))

    def remove(self, key: str) -> None:
        _fs.unlink(self._folder / key)

    def others(self, keys: set[str]) -> list[str]:
        """The keys of all other entries that there are notes of."""
        return sorted(path.name for path in self._folder.iterdir() if path.name not in keys)

    def usable(self) -> Iterator[EntryNote]:
        """Those whose content is there."""
        for path in sorted(self._folder.glob("*")):
            note = _read(path)
            if note is not None and all(self._is_there(digest, size) for digest, size in note.blobs.items()):
                yield note

    def _is_there(self, digest: str, size: int) -> bool:
        with contextlib.suppress(OSError):
            return blob_path(self._root / "blobs", digest).stat().st_size == size
        return False


def _read(path: Path) -> EntryNote | None:
    try:
        data = path.read_bytes()
        if not is_sealed(data):
            return None
        document = _json.loads(data)
        entry = document["entry"]
        key = Key(**entry.pop("key"))
        roles = tuple(entry.pop("roles"))
        tags = {name: tuple(values) for name, values in entry.pop("tags", {}).items()}
        return EntryNote(Entry(key=key, roles=roles, tags=tags, **entry), dict(document["blobs"]))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
