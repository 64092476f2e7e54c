"""The values that cross the border of the store. All frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, TypeAlias

from modelwright._dataclass import dataclass
from modelwright.errors import StoreError
from modelwright.store._key import DIGEST, Key

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"


@dataclass(frozen=True)
class FileEntry:
    """One file of an artifact. `name` is relative, with forward slashes."""

    name: str
    role: str
    digest: str
    size: int


@dataclass(frozen=True)
class Artifact:
    """Files with roles, and what their maker noted about them. `digest` identifies the content."""

    key: Key
    digest: str
    files: tuple[FileEntry, ...]
    meta: Mapping[str, Any] = field(hash=False)
    created: float
    blobs: Path = field(repr=False, compare=False)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def with_role(self, role: str) -> tuple[FileEntry, ...]:
        return tuple(file for file in self.files if file.role == role)

    def path(self, role: str) -> Path:
        """The stored content of the one file with this role. Read-only; hold a lease while you read it."""
        matches = self.with_role(role)
        if len(matches) != 1:
            raise self._no_such(f"{len(matches)} files with the role {role!r}")
        return blob_path(self.blobs, matches[0].digest)

    def path_of(self, name: str) -> Path:
        """The stored content of the file with this name."""
        for file in self.files:
            if file.name == name:
                return blob_path(self.blobs, file.digest)
        raise self._no_such(f"no file named {name!r}")

    def _no_such(self, what: str) -> StoreError:
        held = ", ".join(f"{file.name} ({file.role})" for file in self.files)
        fix = "Ask for one of the files it has."
        return StoreError(f"Artifact {self.key} has {what}", cause=f"it has {held}", fix=fix)


@dataclass(frozen=True)
class Produced:
    """What a producer says about the files it wrote: name → role, and free notes.

    `reused` are files of other artifacts, with the names and roles they have in this one: nothing is copied.
    """

    roles: Mapping[str, str]
    meta: Mapping[str, JsonValue] = field(default_factory=dict)
    reused: tuple[FileEntry, ...] = ()


@dataclass(frozen=True)
class OnceOutcome:
    """What `once` gave back, and whether this call had to make it."""

    artifact: Artifact
    produced: bool
    waited_s: float


@dataclass(frozen=True)
class Waiting:
    """Who makes the result that this process waits for. None is unknown: the maker has just begun."""

    key: Key
    pid: int | None
    host: str | None
    since: float | None


@dataclass(frozen=True)
class Entry:
    """One line of the listing. Only records have `tags`: what they are found by."""

    key: Key
    label: str
    digest: str
    size: int
    created: float
    last_used: float
    roles: tuple[str, ...]
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class StoreStats:
    """What the store holds. Content shared by entries counts once."""

    path: Path
    entries: int
    blobs: int
    bytes: int
    quarantined_bytes: int
    read_only: bool
    records: int


@dataclass(frozen=True)
class Damage:
    """A blob that is not what its name says, and the entries that were dropped for it."""

    digest: str
    reason: str
    entries: tuple[Key, ...]


@dataclass(frozen=True)
class VerifyReport:
    """`orphans` are whole blobs that no entry needs. They are no damage, and gc removes them."""

    checked_blobs: int
    checked_bytes: int
    damaged: tuple[Damage, ...]
    missing: tuple[Damage, ...]
    orphans: tuple[str, ...]

    @property
    def clean(self) -> bool:
        return not self.damaged and not self.missing


@dataclass(frozen=True)
class GcReport:
    """What was removed (or would be, in a dry run) and what is left. `records` stay unless they are asked for."""

    removed: tuple[Entry, ...]
    orphans: int
    freed_bytes: int
    kept_bytes: int
    leased: int
    dry_run: bool
    records: int = 0


CONTENT = "blobs"


def blob_path(blobs: Path, digest: str) -> Path:
    return blobs / digest[:2] / digest


def content_place(digest: str) -> str:
    """Where content is kept, as seen from the store's root."""
    return f"{CONTENT}/{digest[:2]}/{digest}"


def content_at(place: str) -> str | None:
    """The digest of what is kept there; None for any other path."""
    digest = place.rpartition("/")[2]
    return digest if DIGEST.fullmatch(digest) and place == content_place(digest) else None
