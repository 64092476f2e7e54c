"""EP plugin libraries installed beside onnxruntime, found without importing any of them."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import UsageError
from modelwright.targets._catalogue import ExecutionProvider, catalogue

if TYPE_CHECKING:
    from importlib import metadata
else:
    metadata = lazy("importlib.metadata")

LIBRARIES_VARIABLE = "MODELWRIGHT_EP_LIBRARIES"
# Packages called onnxruntime-… that are neither EP plugins nor flavours of the runtime.
_COMPANIONS = {"onnxruntime-extensions", "onnxruntime-genai", "onnxruntime-training", "onnxruntime-tools"}


@dataclass(frozen=True)
class Plugin:
    """A package (`module` with get_library_path and get_ep_name) or a bare library the user named."""

    label: str
    version: str | None
    module: str | None = None
    search_path: str | None = None
    ep_name: str | None = None
    library: str | None = None

    @property
    def provider(self) -> ExecutionProvider | None:
        """The EP of the catalogue this plugin delivers, if it is one of them."""
        if self.ep_name:
            return catalogue().find(self.ep_name)
        return next((ep for ep in catalogue().eps if ep.delivery == "plugin" and ep.package == self.label), None)


def installed_plugins() -> tuple[Plugin, ...]:
    """Packages that follow the plugin convention, then libraries from the environment."""
    return (*_packaged(), *_named_by_user())


def library_digest(provider: ExecutionProvider) -> str | None:
    """SHA-256 of the library the user named for this EP: it has no version that would tell two of them apart."""
    named = next((found for found in _named_by_user() if found.provider == provider), None)
    if named is None or named.library is None or not Path(named.library).is_file():
        return None
    with Path(named.library).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _packaged() -> list[Plugin]:
    replacing = {ep.package for ep in catalogue().eps if ep.delivery != "plugin"}
    replacing |= {ep.flavour for ep in catalogue().eps if ep.flavour}
    found: dict[str, Plugin] = {}
    for distribution in _distributions():
        name = re.sub(r"[-_.]+", "-", distribution.name or "").lower()
        if name.startswith("onnxruntime-") and name not in replacing | _COMPANIONS and name not in found:
            found[name] = Plugin(
                label=name,
                version=distribution.version,
                module=name.replace("-", "_"),
                search_path=str(distribution.locate_file("")),
            )
    return sorted(found.values(), key=lambda plugin: plugin.label)


def _distributions() -> Iterator[metadata.Distribution]:
    """Packages that could be one, in the order of the import path, by the names of their folders: a session that is
    opened asks for them, and the metadata of all that is installed takes longer to read than most models."""
    for place in sys.path:
        for folder in sorted(Path(place).glob("onnxruntime[-_]*.*-info")):
            yield metadata.Distribution.at(folder)


def _named_by_user() -> list[Plugin]:
    """`MODELWRIGHT_EP_LIBRARIES="AcmeExecutionProvider=/opt/acme/libacme.so"`, separated like PATH."""
    plugins = []
    for item in filter(None, os.environ.get(LIBRARIES_VARIABLE, "").split(os.pathsep)):
        name, equals, path = item.partition("=")
        if not equals or not name.strip() or not path.strip():
            raise UsageError(
                f"cannot read '{item}' in {LIBRARIES_VARIABLE}",
                cause="each entry is EP_NAME=/path/to/library",
                fix=f"set it like AcmeExecutionProvider=/opt/acme/{_library_name('acme')}",
            )
        library = str(Path(path.strip()).expanduser().absolute())
        plugins.append(Plugin(label=library, version=None, ep_name=name.strip(), library=library))
    return plugins


def _library_name(stem: str) -> str:
    return {"win32": f"{stem}.dll", "darwin": f"lib{stem}.dylib"}.get(sys.platform, f"lib{stem}.so")
