"""What travels: a build folder under a name. Its description is an OCI manifest, whatever the feed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from modelwright._dataclass import dataclass
from modelwright._json import canonical, loads
from modelwright.errors import WrightError
from modelwright.farm.feeds._names import path_name, word_name
from modelwright.models import MANIFEST, FileDigest
from modelwright.store import check_names

ARTIFACT_TYPE = "application/vnd.modelwright.build.v1"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
LARGEST_DESCRIPTION = 4 << 20
DESCRIPTION = "wright-package.json"
"""The description of a package, where it is kept among its files."""
LICENCE = "org.opencontainers.image.licenses"
EMPTY = b"{}"
"""The content of the config that every OCI manifest must have."""

_OURS = "org.modelwright."
_TITLE = "org.opencontainers.image.title"
_MEDIA_TYPES = {MANIFEST: "application/vnd.modelwright.manifest.v2+json"}
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Package:
    """What an artifact is called in a feed. One name stands for one content, for good.

    Without a `version` it is published under the beginning of its content's digest, and the newest is what is pulled.
    """

    model: str
    target: str
    precision: str
    version: str | None = None

    @property
    def repository(self) -> str:
        """Where all packages of a model are."""
        return path_name(self.model)

    @property
    def tag(self) -> str:
        """The package in its repository."""
        return word_name(self.target, self.precision, self.version or "")

    def __str__(self) -> str:
        return f"{self.model} for {self.target}, {self.precision}" + (f", {self.version}" if self.version else "")


@dataclass(frozen=True)
class Shipment:
    """A package with all its files, the build's manifest too. `notes` are annotations: EP, device, opset, licence.

    `content` stands for what was built, and not for when and how fast: building the same again is the same content.
    """

    package: Package
    content: str
    files: tuple[FileDigest, ...]
    notes: Mapping[str, str]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def description(self) -> bytes:
        """The OCI manifest."""
        document = {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "artifactType": ARTIFACT_TYPE,
            "config": _descriptor("application/vnd.oci.empty.v1+json", hashlib.sha256(EMPTY).hexdigest(), len(EMPTY)),
            "layers": [_layer(file) for file in self.files],
            "annotations": self.annotations,
        }
        return canonical(document)

    @property
    def annotations(self) -> dict[str, str]:
        """All that can be known of it without its files."""
        named = {name: value for name, value in vars(self.package).items() if value is not None}
        ours = {f"{_OURS}{name}": value for name, value in {**named, "content": self.content}.items()}
        return {**self.notes, **ours}

    @property
    def digest(self) -> str:
        """What identifies it in the feed."""
        return hashlib.sha256(self.description).hexdigest()

    def same_as(self, other: Shipment) -> bool:
        """The same content: every file but the manifest, in which times differ, and all it says but for times."""
        return self.content == other.content and _built(self.files) == _built(other.files)


def read_shipment(data: bytes) -> Shipment:
    """What a feed says about a package. A ValueError says what is wrong with it: feeds can lie, and be damaged."""
    if len(data) > LARGEST_DESCRIPTION:
        raise ValueError("it is too long")
    document = loads(data)
    try:
        if document.get("artifactType") != ARTIFACT_TYPE:
            raise ValueError("it describes something else than a build")
        notes = {str(key): str(value) for key, value in document["annotations"].items()}
        package, content = package_of(notes), notes[f"{_OURS}content"]
        files = tuple(_file(layer) for layer in document["layers"])
        _check_files(files)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__} {error}") from error
    named = {f"{_OURS}{name}" for name in ("content", *vars(package))}
    return Shipment(package, content, files, {name: value for name, value in notes.items() if name not in named})


def package_in(data: bytes | None) -> Package | None:
    """What a description in a listing is about; a damaged one is no offer, and is told of when it is asked for."""
    try:
        return None if data is None else read_shipment(data).package
    except ValueError:
        return None


def package_of(annotations: Mapping[str, str]) -> Package:
    """What a package is called, by its annotations; a KeyError where they do not say."""
    model, target, precision = (annotations[f"{_OURS}{name}"] for name in ("model", "target", "precision"))
    return Package(model, target, precision, annotations.get(f"{_OURS}version"))


def _check_files(files: tuple[FileDigest, ...]) -> None:
    try:
        check_names(file.name for file in files)
    except WrightError as error:
        raise ValueError(str(error)) from error
    if MANIFEST not in {file.name for file in files}:
        raise ValueError(f"it has no {MANIFEST}")


def _file(layer: Mapping[str, Any]) -> FileDigest:
    kind, _, sha256 = str(layer["digest"]).partition(":")
    size = layer["size"]
    if kind != "sha256" or not _SHA256.fullmatch(sha256) or type(size) is not int or size < 0:
        raise ValueError(f"{layer['digest']} with {size} bytes is no file")
    return FileDigest(str(layer["annotations"][_TITLE]), sha256, size)


def _layer(file: FileDigest) -> dict[str, Any]:
    kind = _MEDIA_TYPES.get(file.name, "application/octet-stream")
    return {**_descriptor(kind, file.sha256, file.size), "annotations": {_TITLE: file.name}}


def _descriptor(media_type: str, sha256: str, size: int) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": f"sha256:{sha256}", "size": size}


def _built(files: Iterable[FileDigest]) -> set[FileDigest]:
    return {file for file in files if file.name != MANIFEST}
