"""Models that stages read: in the store, or in a folder of the user's."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright._json import digest
from modelwright._scratch import scratch
from modelwright.graph import MODEL
from modelwright.models import model_files
from modelwright.store import Artifact, FileEntry, Store

Paths = Mapping[str, str]


@dataclass(frozen=True)
class ModelInput:
    """A model inside an artifact; an export of several components keeps each in a folder of its own."""

    artifact: Artifact
    folder: str = ""

    @functools.cached_property
    def files(self) -> tuple[FileEntry, ...]:
        prefix = f"{self.folder}/" if self.folder else ""
        return tuple(file for file in self.artifact.files if file.name.startswith(prefix))

    @functools.cached_property
    def digest(self) -> str:
        """What the files are, without the notes beside them: timings differ between machines, contents must not."""
        skip = len(self.folder) + 1 if self.folder else 0
        return digest(sorted((file.name[skip:], file.digest) for file in self.files))

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @contextlib.contextmanager
    def opened(self, store: Store) -> Iterator[str]:
        """Its path: where the store keeps it when it is one file, else in a copy of its folder.

        Not hard links: onnx refuses external data that has more than one name.
        """
        if len(self.files) == 1:
            with store.lease(self.artifact):
                yield str(self.artifact.path_of(self.files[0].name))
        else:
            with scratch("inputs", store.root.parent / "scratch") as place:
                yield str(store.materialize(self.artifact, place / "model") / self.folder / MODEL)


@dataclass(frozen=True)
class DiskModel:
    """A model of the user's, read where it is. `digest` is the one it would have in the store."""

    path: str
    digest: str
    size: int

    @classmethod
    def at(cls, path: Path) -> DiskModel:
        files = model_files(path)
        named = sorted((MODEL if file.name == path.name else file.name, file.sha256) for file in files)
        return cls(str(path), digest(named), sum(file.size for file in files))

    @contextlib.contextmanager
    def opened(self, store: Store) -> Iterator[str]:
        yield self.path


Model = ModelInput | DiskModel


@contextlib.contextmanager
def model_paths(store: Store, models: Mapping[str, Model]) -> Iterator[Paths]:
    """The models as files to read, by name."""
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(model.opened(store)) for name, model in models.items()}
