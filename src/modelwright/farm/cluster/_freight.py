"""A node as a job for another machine, and back: files by digest, values as JSON."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from modelwright._json import plain
from modelwright._typed import MisfitError, typed
from modelwright.data import DataSource, Drawn, DrawnRow, data_files
from modelwright.errors import UsageError
from modelwright.farm.cluster._wire import NodeJob, ShippedModel, ShippedValue, forged
from modelwright.graph import MODEL
from modelwright.models import HfSource, file_digest, model_files
from modelwright.plans import DiskModel, Model, ModelInput, Node
from modelwright.stages import Stage
from modelwright.stages.decode import DecodeOutcome
from modelwright.store import Artifact, FileEntry, Key, Produced, Store, stage_key
from modelwright.worker import said_limits

AnyNode = Node[Any, Any]
Stages = Mapping[tuple[str, str], Stage[Any, Any]]
Place = Callable[[str, tuple[FileEntry, ...]], Path]
"""Puts files into a folder of that name, under their names."""
RECEIVED = "received"
_ROLE = "companion"
CODE = ".py"
# Files of a processor's folder; its weights are not asked for.
_PROCESSOR = (".json", ".txt", ".model", ".jinja")


class Freight:
    """What a job is made of on this side: where each content lies here."""

    def __init__(self) -> None:
        self._paths: dict[str, Path] = {}

    def path(self, digest: str) -> Path | None:
        return self._paths.get(digest)

    def add(self, path: Path, name: str) -> FileEntry:
        digest = file_digest(path)
        self._paths[digest] = path
        return FileEntry(name, _ROLE, digest, path.stat().st_size)

    def model(self, model: Model) -> ShippedModel:
        if isinstance(model, DiskModel):
            return ShippedModel(tuple(self._on_disk(Path(model.path))))
        for file in model.files:
            self._paths[file.digest] = model.artifact.path_of(file.name)
        return ShippedModel(model.files, model.folder)

    def _on_disk(self, path: Path) -> list[FileEntry]:
        files = model_files(path)
        named = [(MODEL if file.name == path.name else file.name, path.parent / file.name) for file in files]
        return [replace(self.add(place, name), role="model" if name == MODEL else _ROLE) for name, place in named]

    def value(self, value: object) -> ShippedValue:
        if isinstance(value, DataSource):
            return self._data(value)
        if isinstance(value, HfSource):
            return self._source(value)
        texts = isinstance(value, tuple) and bool(value)
        return ShippedValue("texts" if texts else "plain", plain(value))

    def _source(self, source: HfSource) -> ShippedValue:
        folder = Path(str(source.folder))
        files = tuple(self.add(folder / name, name) for name in source.files)
        return ShippedValue("source", plain(replace(source, folder=None)), files)

    def _data(self, source: DataSource) -> ShippedValue:
        """Rows of the user's own function were drawn here: they travel, the function does not."""
        data, drawn, files = source.data, source.drawn, list[FileEntry]()
        if drawn is not None:
            rows, files = self._rows(drawn)
            drawn = Drawn("", drawn.kind, rows)
            data = replace(data, source=_basename(data.source), labels=None)
        elif not data.random:
            data, files = self._files(source)
        if data.processor is not None:
            folder = Path(data.processor).expanduser()
            named = [path for path in sorted(folder.glob("*")) if path.suffix in _PROCESSOR and path.is_file()]
            files += [self.add(path, f"processor/{path.name}") for path in named]
            data = replace(data, processor="processor")
        return ShippedValue("data", plain(replace(source, data=data, drawn=drawn)), _each_once(files))

    def _files(self, source: DataSource) -> tuple[Any, list[FileEntry]]:
        data, found = source.data, data_files(source.data)
        if found is None:
            raise UsageError(
                f"{data.source} cannot be sent to another machine",
                cause="its rows are given by a package or by code, and were not drawn here",
                fix="give the samples as files",
            )
        base = Path(data.source).expanduser()
        labels = None if data.labels is None else Path(data.labels).expanduser()
        inside = [path for path in found if path != labels]
        names = [path.relative_to(base).as_posix() if path != base else "" for path in inside]
        top = f"samples/{base.name}"
        files = [self.add(path, f"{top}/{name}".rstrip("/")) for path, name in zip(inside, names, strict=True)]
        if labels is not None:
            files.append(self.add(labels, f"labels/{labels.name}"))
            data = replace(data, labels=f"labels/{labels.name}")
        return replace(data, source=top), files

    def _rows(self, drawn: Drawn) -> tuple[tuple[DrawnRow, ...], list[FileEntry]]:
        rows, files = [], []
        for row in drawn.rows:
            arrays = []
            for name, dtype, file in row.arrays:
                path = Path(drawn.folder, file)
                entry = self.add(path, f"rows/{file_digest(path)}.npy")
                files.append(entry)
                arrays.append((name, dtype, entry.name))
            rows.append(replace(row, arrays=tuple(arrays)))
        return tuple(rows), files


def _each_once(files: list[FileEntry]) -> tuple[FileEntry, ...]:
    return tuple({file.name: file for file in files}.values())


def _basename(source: str) -> str:
    """`file.py:function` and names of data sets, without the folders of this machine."""
    return source.replace("\\", "/").rpartition("/")[2] or source


class Unloading:
    """The worker's side. `place` puts files into a private folder; `trusts`: may code that comes along be run?"""

    def __init__(self, store: Store, stages: Stages, place: Place, *, trusts: bool) -> None:
        self._store, self._stages, self._place, self._trusts = store, stages, place, trusts

    def node(self, job: NodeJob) -> tuple[AnyNode, Mapping[str, Model]]:
        """The node as it would be here; one that is not among this machine's stages is refused."""
        stage = self._stages.get((job.stage, job.version))
        if stage is None:
            raise UsageError(
                f"there is no stage {job.stage} of version {job.version} here",
                cause="a worker runs the stages of its own modelwright, and nothing else",
                fix="install the same modelwright on both machines",
            )
        models = {name: self._model(model) for name, model in job.inputs.items()}
        try:
            params = typed(stage.params, job.params, strict=True)
            given = {name: self._value(name, item) for name, item in job.given.items()}
        except MisfitError as error:
            raise forged(f"{job.stage}: {error}") from None
        node = Node(stage, params, models, job.label, given, job.marks, job.data_bytes)
        return node, models

    def _model(self, model: ShippedModel) -> ModelInput:
        return ModelInput(tree(self._store, model.files), model.folder)

    def _value(self, name: str, item: ShippedValue) -> object:
        if item.kind == "data":
            return self.data(name, item)
        if item.kind == "source":
            return self._source(name, item)
        if item.kind == "texts":
            return typed(typing.get_type_hints(DecodeOutcome)["texts"], item.form)
        return item.form

    def _source(self, name: str, item: ShippedValue) -> HfSource:
        source = typed(HfSource, item.form, strict=True)
        code = [file.name for file in item.files if file.name.endswith(CODE)]
        if (code or source.trust_remote_code) and not self._trusts:
            raise UsageError(
                f"{source.name} brings Python code, and this worker runs none",
                cause=f"it was started without `trust`: {', '.join(code) or 'trust_remote_code'}",
                fix="start `wright worker` with `trust` where you know what the code does",
            )
        return replace(source, folder=str(self._place(name, item.files)))

    def data(self, name: str, item: ShippedValue) -> DataSource:
        """Every path in it is one of the files that came along: it says nothing about this machine's own files."""
        source = typed(DataSource, item.form, strict=True)
        data, drawn = source.data, source.drawn
        said = {part: getattr(data, part) for part in ("labels", "processor")}
        if drawn is None and not data.random:
            said["source"] = data.source
        words = [word for word in said.values() if word is not None]
        rows = [file for row in (() if drawn is None else drawn.rows) for *_, file in row.arrays]
        _require_inside((*words, *rows), item.files)
        if not item.files:
            return source
        base = self._place(name, item.files)
        there: dict[str, Any] = {part: str(base / word) for part, word in said.items() if word is not None}
        return replace(
            source,
            data=replace(data, **there),
            drawn=None if drawn is None else replace(drawn, folder=str(base)),
        )


def _require_inside(words: Iterable[str], files: tuple[FileEntry, ...]) -> None:
    names = {file.name for file in files}
    inside = names | {str(parent) for name in names for parent in PurePosixPath(name).parents} - {"."}
    for word in words:
        if word not in inside:
            raise forged(f"it names {word!r}, which did not come along")


def tree(store: Store, files: tuple[FileEntry, ...]) -> Artifact:
    """An artifact of contents that are in the store: nothing is copied."""
    key = stage_key(stage=RECEIVED, version="1", libraries={}, inputs={}, params=plain(files))
    return store.once(key, lambda _: Produced(roles={}, reused=files), label=RECEIVED).artifact


def make_job(node: AnyNode, models: Mapping[str, Model], freight: Freight, key: Key, job: str, topic: str) -> NodeJob:
    timeout, memory = said_limits()
    return NodeJob(
        id=job,
        topic=topic,
        stage=node.stage.name,
        version=node.stage.version,
        params=plain(node.params),
        inputs={name: freight.model(model) for name, model in models.items()},
        given={name: freight.value(value) for name, value in node.given.items()},
        marks=dict(node.marks),
        label=node.label,
        key=key.digest,
        data_bytes=node.data_bytes,
        timeout=timeout,
        memory=memory,
    )
