"""From builds to the variants of a package, in the order in which a selector asks them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from modelwright.answers.ship._types import ShippedVariant, VariantModel
from modelwright.graph import facts
from modelwright.knowledge import operators_of
from modelwright.models import FileDigest, read_build
from modelwright.pipeline import BuildResult, assemble
from modelwright.search import portability
from modelwright.store import FileEntry, Store
from modelwright.targets import parse_target

_FOLDER = "variants"


def in_order(builds: Iterable[BuildResult]) -> list[BuildResult]:
    """As they were named, but what is compiled for a chip before what is not, and onnxruntime's own CPU last: it runs
    everywhere, so nothing behind it would ever be taken."""
    return sorted(builds, key=lambda build: (parse_target(build.target).ep == "cpu", not _compiled(build)))


def package_files(builds: Sequence[BuildResult], store: Store) -> list[FileEntry]:
    """The files of all builds under their names in the package. Builds with the same models share one folder."""
    found: dict[str, FileEntry] = {}
    for build, folder in zip(builds, folders_of(builds), strict=True):
        for file in assemble(build, store).files:
            found.setdefault(f"{folder}/{file.name}", replace(file, name=f"{folder}/{file.name}"))
    return list(found.values())


def folders_of(builds: Sequence[BuildResult]) -> list[str]:
    first: dict[tuple[str, ...], str] = {}
    return [
        first.setdefault(_content(build), f"{_FOLDER}/{parse_target(build.target).folder_name}") for build in builds
    ]


def shipped(build: BuildResult, folder: str, package: Path) -> ShippedVariant:
    """A variant, read from the package itself."""
    target = parse_target(build.target)
    read = read_build(package / folder)
    paths = {part.name: f"{folder}/{part.model}" for part in read.parts}
    operators = {name: count for path in paths.values() for name, count in operators_of(package / path).items()}
    carried, because = portability(operators, build.target)
    device = target.device_entry
    words = target.adapter.device_words
    return ShippedVariant(
        target=build.target,
        ep=target.provider.name,
        device=target.device,
        folder=folder,
        carried=carried,
        carried_because=because,
        precision=build.recipe.precision,
        models=tuple(_model(name, path, package) for name, path in paths.items()),
        files=tuple(FileDigest(f"{folder}/{file.name}", file.sha256, file.size) for file in read.files),
        options={**device.shipped, **{key: value for key, value in device.options.items() if key not in words}},
        where={key: value for key, value in device.options.items() if key in words},
    )


def _model(component: str, path: str, package: Path) -> VariantModel:
    found = facts(package / path)
    opsets = tuple(f"{one.domain or 'ai.onnx'} {one.version}" for one in found.opsets)
    return VariantModel(component, str(PurePosixPath(path)), found.ir_version, opsets)


def _compiled(build: BuildResult) -> bool:
    return any(stage.stage == "compile" for part in build.components for stage in part.stages)


def _content(build: BuildResult) -> tuple[str, ...]:
    """What a variant is for somebody who runs it: the manifest of its build is not."""
    return tuple(f"{part.name} {file.name} {file.digest}" for part in build.components for file in part.final.files)
