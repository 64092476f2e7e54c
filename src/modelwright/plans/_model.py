"""Models that stages read: in the store, or in a folder of the user's."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright._json import digest
from modelwright._scratch import scratch
from modelwright.graph import DATA, MODEL, data_places, with_data_at
from modelwright.models import model_files
from modelwright.store import Artifact, FileEntry, Store, content_at, content_place

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
        """Its path: where the store keeps it when it is one file; with weights of its own a graph beside the store's
        content, which they are read from; else in a copy of its folder.

        Not links: onnx refuses external data that has more than one name.
        """
        with contextlib.ExitStack() as stack:
            if len(self.files) == 1:
                stack.enter_context(store.lease(self.artifact))
                yield str(self.artifact.path_of(self.files[0].name))
            elif (graph := self._in_place()) is not None and store.writable:
                stack.enter_context(store.lease(self.artifact))
                yield str(stack.enter_context(store.beside_content(graph)))
            else:
                place = stack.enter_context(scratch("inputs", store.root.parent / "scratch"))
                yield str(store.materialize(self.artifact, place / "model") / self.folder / MODEL)

    def _in_place(self) -> bytes | None:
        """The graph, naming its weights where the store keeps them; None if it has other files than those beside it."""
        prefix = f"{self.folder}/" if self.folder else ""
        data = {file.name.removeprefix(prefix): content_place(file.digest) for file in self.files}
        if data.pop(MODEL, None) is None:
            return None
        model = self.artifact.path_of(prefix + MODEL)
        return with_data_at(model, data) if data_places(model) == data.keys() else None


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


def left_in_store(workdir: Path, models: Mapping[str, Model]) -> tuple[FileEntry, ...]:
    """What a stage's graph refers to in the store, as files of its result; the graph gets names for them instead."""
    path = workdir / MODEL
    inputs = [model for model in models.values() if isinstance(model, ModelInput)]
    if path.is_symlink():
        return _kept_as_it_is(path, inputs)
    known = {file.digest: file for model in inputs if len(model.files) > 1 for file in model.files}
    if not known or not path.is_file():
        return ()
    digests = {place: digest for place in sorted(data_places(path)) if (digest := content_at(place)) is not None}
    names = dict(zip(digests, _free_names(workdir), strict=False))
    if names:
        path.write_bytes(with_data_at(path, names))
    return tuple(replace(known[digest], name=names[place], role="companion") for place, digest in digests.items())


def _kept_as_it_is(path: Path, inputs: Sequence[ModelInput]) -> tuple[FileEntry, ...]:
    """A stage that changed nothing refers to its input's file; one that is not in the store is taken in."""
    for model in inputs:
        for file in model.files:
            if model.artifact.path_of(file.name).samefile(path):
                path.unlink()
                return (replace(file, name=MODEL, role="model"),)
    return ()


def _free_names(folder: Path) -> Iterator[str]:
    names = itertools.chain([DATA], (f"{MODEL}.{number}.data" for number in itertools.count(1)))
    return (name for name in names if not (folder / name).exists())
