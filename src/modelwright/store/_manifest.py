"""The tree manifest: canonical JSON whose digest identifies an artifact."""

from __future__ import annotations

import json
from collections.abc import Mapping

from modelwright import _json
from modelwright._dataclass import dataclass
from modelwright.errors import StoreError
from modelwright.store._key import require_digest
from modelwright.store._names import check_names
from modelwright.store._types import FileEntry, JsonValue

_FORMAT = 1


@dataclass(frozen=True)
class Manifest:
    files: tuple[FileEntry, ...]
    meta: Mapping[str, JsonValue]

    def encode(self) -> bytes:
        return _json.canonical({"format": _FORMAT, "files": self.files, "meta": self.meta})


def make_manifest(files: list[FileEntry], meta: Mapping[str, JsonValue]) -> Manifest:
    ordered = sorted(files, key=lambda file: file.name)
    plain = _json.plain(dict(meta))  # what a reader will get back, not tuples and enums
    return Manifest(tuple(ordered), plain)


def parse_manifest(data: bytes) -> Manifest:
    """The manifest, or ValueError: a digest proves who wrote bytes, not that they are safe to follow."""
    try:
        document = json.loads(data)
        if document["format"] != _FORMAT:
            raise ValueError(f"manifest format {document['format']} is not {_FORMAT}")
        files = tuple(_file(item) for item in document["files"])
        check_names(file.name for file in files)
        return Manifest(files, dict(document["meta"]))
    except (KeyError, TypeError, StoreError) as error:
        raise ValueError(f"not a manifest: {error}") from error


def _file(item: Mapping[str, object]) -> FileEntry:
    name, role, digest, size = item["name"], item["role"], item["digest"], item["size"]
    if not (isinstance(name, str) and isinstance(role, str) and isinstance(digest, str) and isinstance(size, int)):
        raise TypeError("a file has fields of the wrong type")
    require_digest(digest)
    return FileEntry(name, role, digest, size)
