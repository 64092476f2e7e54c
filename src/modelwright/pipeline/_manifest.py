"""`wright.json`: what a build folder is, and everything that made it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from modelwright import __version__
from modelwright._filenames import near
from modelwright._installed import installed
from modelwright._json import dumps, plain
from modelwright._output import SEAL, sealed
from modelwright.errors import UsageError
from modelwright.models import MANIFEST, MANIFEST_VERSION, PROCESSORS, HfSource, OnnxSource
from modelwright.pipeline._build import SINGLE, BuildResult, Built
from modelwright.pipeline._recipe import Recipe
from modelwright.plans import MODEL, StageResult
from modelwright.stages.export import EXPORT
from modelwright.store import DELIVERY_NOTE, Artifact, FileEntry, Produced, Store, stage_key
from modelwright.targets import catalogue

_LIBRARIES = ("onnxruntime", "onnx", "onnx-ir", "numpy", "torch", "transformers")


def deliver(result: BuildResult, folder: Path, *, store: Store, overwrite: bool = False, shared: bool = False) -> Path:
    """Write the build as a folder: a view of the store, swapped in whole, so that no stale file survives. `shared`:
    what folders beside it have too is there once."""
    beside = _beside(folder) if shared else None
    store.materialize(assemble(result, store), folder, overwrite=overwrite, beside=beside)
    return folder


def _beside(folder: Path) -> list[Path]:
    """Folders that were delivered beside this one."""
    if not folder.parent.is_dir():
        return []
    return [item for item in sorted(folder.parent.iterdir()) if item != folder and (item / DELIVERY_NOTE).is_file()]


def check_folder(source: OnnxSource | HfSource, folder: Path | None, *, store: Store, overwrite: bool) -> None:
    """Refuse before building a folder that the build could not go to; the model's own folder is never one."""
    if folder is None:
        return
    if folder.resolve() == _own_folder(source):
        raise UsageError(
            f"{folder} is the model's own folder",
            cause="what is there would be taken for the build, or the build for it",
            fix="choose another folder",
        )
    store.check_destination(folder, (MANIFEST, MODEL), overwrite=overwrite)


def _own_folder(source: OnnxSource | HfSource) -> Path | None:
    """A model of the Hub has none: it is fetched into a cache of its own."""
    if isinstance(source, OnnxSource):
        return Path(source.path).resolve().parent
    return Path(source.folder).resolve() if source.folder is not None else None


def assemble(result: BuildResult, store: Store) -> Artifact:
    """The build as one artifact: the final files of every component, and the manifest."""
    inputs = {component.name: component.final.digest for component in result.components}
    # What the target says may change without a key that tells.
    judged = {part.name: [part.passed, *(stage.key.digest for stage in part.stages)] for part in result.components}
    if result.agreement is not None:
        judged[result.agreement.stage] = [result.agreement.outcome.passed, result.agreement.key.digest]
    params = {
        "recipe": _shown(result.recipe),
        "source": result.source,
        "identity": result.identity,
        "judged": judged,
        "accuracy": result.accuracy,
    }
    key = stage_key(stage="build", version="3", libraries={}, inputs=inputs, params=params)

    def produce(workdir: Path) -> Produced:
        (workdir / MANIFEST).write_bytes(sealed(dumps(manifest(result)) + "\n"))
        finished = (file for component in result.components for file in _finished(result, component))
        return Produced(roles={MANIFEST: "manifest"}, reused=(*finished, *_companions(result)))

    return store.once(key, produce, label=f"{result.source} for {result.target}").artifact


def manifest(result: BuildResult) -> dict[str, Any]:
    """No path of this machine is in it."""
    return {
        "schema_version": MANIFEST_VERSION,
        "tool": f"modelwright {__version__}",
        "source": {"name": result.source, "identity": result.identity, "task": result.task},
        "target": result.target,
        "precision": result.recipe.precision,
        "passed": result.passed,
        "accuracy": plain(result.accuracy),
        "recipe": plain(_shown(result.recipe)),
        "libraries": {name: installed(name) for name in _LIBRARIES} | _eps(),
        "components": [_entry(result, component) for component in result.components],
        "companions": [{"name": f.name, "sha256": f.digest, "size": f.size} for f in _companions(result)],
        "links": plain(result.links),
        "agreement": None if result.agreement is None else _stage(result.agreement),
        "seal": SEAL,
    }


def _eps() -> dict[str, str]:
    return {name: version for name in catalogue().packages() if (version := installed(name)) is not None}


def _shown(recipe: Recipe) -> Recipe:
    """Without a path of this machine: data is named as seen from here, or by its own name."""
    data = recipe.data
    labels, processor = data.labels and near(data.labels), data.processor and near(data.processor)
    shown = dataclasses.replace(data, source=near(data.source), labels=labels, processor=processor)
    export = recipe.export
    if export is not None and export.family is not None:
        export = dataclasses.replace(export, family=near(export.family))
    return dataclasses.replace(recipe, data=shown, export=export)


def _entry(result: BuildResult, component: Built) -> dict[str, Any]:
    return {
        "name": component.name,
        "folder": _folder(result, component),
        "passed": component.passed,
        "files": [
            {"name": _short(component, f.name), "sha256": f.digest, "size": f.size} for f in component.final.files
        ],
        "inputs": plain(component.inputs),
        "stages": [_stage(stage) for stage in component.stages],
    }


def _stage(stage: StageResult[Any]) -> dict[str, Any]:
    return {
        "stage": stage.stage,
        "key": stage.key.digest,
        "files": {file.name: file.digest for file in stage.artifact.files},
        "seconds": stage.seconds,
        "cpu_seconds": stage.cpu_seconds,
        "peak_rss_bytes": stage.peak_rss_bytes,
        "outcome": stage.facts,
    }


def _companions(result: BuildResult) -> tuple[FileEntry, ...]:
    """What an export kept beside its graphs: tokenizer, processor, configuration. A model that prepares images itself
    has no use for a processor that does it once more."""
    first = result.components[0].stages[0]
    if first.stage != EXPORT.name:
        return ()
    untrue = PROCESSORS if result.recipe.inputs is not None else ()
    return tuple(file for file in first.artifact.files if "/" not in file.name and file.name not in untrue)


def _folder(result: BuildResult, component: Built) -> str:
    return "" if len(result.components) == 1 and component.name == SINGLE else component.name


def _short(component: Built, name: str) -> str:
    return name.removeprefix(f"{component.final.folder}/") if component.final.folder else name


def _finished(result: BuildResult, component: Built) -> Iterator[FileEntry]:
    """The final files of a component, under the names they have in the build folder."""
    folder = PurePosixPath(_folder(result, component))
    for file in component.final.files:
        yield dataclasses.replace(file, name=str(folder / _short(component, file.name)))
