"""The index of a model: one document that names every package of it, with what tells them apart."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Any

from modelwright._dataclass import dataclass
from modelwright._json import canonical, loads
from modelwright.farm.feeds._feed import Offered
from modelwright.farm.feeds._package import ARTIFACT_TYPE, OCI_MANIFEST, package_of, read_shipment

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
INDEX = "index"
"""Its tag. No package has that one: theirs hold an underscore or end in a digest."""

_REF = "org.opencontainers.image.ref.name"
_CREATED = "org.opencontainers.image.created"


@dataclass(frozen=True)
class ModelIndex:
    """Descriptors by tag."""

    entries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def document(self) -> bytes:
        listed = [self.entries[tag] for tag in sorted(self.entries)]
        kinds = {"mediaType": OCI_INDEX, "artifactType": ARTIFACT_TYPE}
        return canonical({"schemaVersion": 2, **kinds, "manifests": listed})

    def with_descriptions(self, descriptions: Mapping[str, bytes]) -> ModelIndex:
        """With those that describe a build: others may have pushed anything. What is known stays as it is."""
        found = {tag: _entry(tag, data) for tag, data in descriptions.items()}
        fresh = {tag: entry for tag, entry in found.items() if entry is not None and not self._knows(tag, entry)}
        return ModelIndex({**self.entries, **fresh})

    def _knows(self, tag: str, entry: Mapping[str, Any]) -> bool:
        return bool(self.entries.get(tag, {}).get("digest") == entry["digest"])

    def offers(self) -> tuple[Offered, ...]:
        return tuple(_offer(entry) for entry in self.entries.values())


def read_index(data: bytes | None) -> ModelIndex:
    """What a registry has as the index. One that is damaged knows nothing: tags and packages are the truth."""
    try:
        listed = loads(data)["manifests"] if data is not None else ()
        entries = {str(entry["annotations"][_REF]): entry for entry in listed}
        for entry in entries.values():
            _offer(entry)
            str(entry["digest"]), int(entry["size"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return ModelIndex()
    return ModelIndex(entries)


def is_index(data: bytes | None) -> bool:
    """Whether it is one of ours, damaged or not."""
    try:
        return data is not None and bool(loads(data)["artifactType"] == ARTIFACT_TYPE)
    except (ValueError, KeyError, TypeError):
        return False


def _entry(tag: str, description: bytes) -> Mapping[str, Any] | None:
    try:
        shipment = read_shipment(description)
    except ValueError:
        return None
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    return {
        "mediaType": OCI_MANIFEST,
        "artifactType": ARTIFACT_TYPE,
        "digest": _digest(description),
        "size": len(description),
        "annotations": {**shipment.annotations, _REF: tag, _CREATED: now},
    }


def _offer(entry: Mapping[str, Any]) -> Offered:
    notes = entry["annotations"]
    return Offered(package_of(notes), datetime.fromisoformat(notes[_CREATED]).timestamp())


def _digest(description: bytes) -> str:
    return f"sha256:{hashlib.sha256(description).hexdigest()}"
