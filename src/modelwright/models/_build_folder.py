"""A folder that a build wrote, and the proof that it still is what was built.

`wright.json` names the digest of every file and is sealed itself, so a file that was exchanged and a manifest that was
edited are both noticed. Whoever opens a build folder does it here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._json import loads
from modelwright._output import is_sealed
from modelwright._typed import typed
from modelwright.errors import InputError, UsageError
from modelwright.graph import facts, stands_alone
from modelwright.models._digest import file_digest
from modelwright.store import DELIVERY_NOTE
from modelwright.vocabulary import InputSpec, TensorSpec, weakest

if TYPE_CHECKING:
    from modelwright.store import JsonValue

MANIFEST = "wright.json"
MANIFEST_VERSION = 2
_AGAIN = "build it again, or give the .onnx file itself to use it as a plain model"


@dataclass(frozen=True)
class FileDigest:
    """A file by its content. The name is relative, with forward slashes."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True)
class BuildVerdict:
    """What a build said of a model when it had made it; `wrong` are the words of what did not pass."""

    passed: bool | None
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True)
class BuildPart:
    """One model of a build: where it is, all its files by their names in the build folder, what it is fed, and whether
    the gates were passed, its own and those of the whole build."""

    name: str
    folder: str
    model: str
    files: tuple[FileDigest, ...]
    inputs: InputSpec
    verdict: BuildVerdict


@dataclass(frozen=True)
class BuildFolder:
    """What the manifest says. `links` say how the parts feed each other; `companions` are the tokenizer, processor and
    configuration that came with the model."""

    path: Path
    parts: tuple[BuildPart, ...]
    links: tuple[Mapping[str, str], ...]
    recipe: Mapping[str, JsonValue]
    companions: tuple[FileDigest, ...] = ()

    @property
    def files(self) -> tuple[FileDigest, ...]:
        """Everything that was built, without the manifest itself."""
        return (*(file for part in self.parts for file in part.files), *self.companions)

    def model(self, part: str | None = None) -> Path:
        """The .onnx file of a part; of the only one, where none is named."""
        found = [item for item in self.parts if part in (None, item.name)]
        if len(found) != 1:
            raise UsageError(
                f"{self.path.name} is a build of several models"
                if part is None
                else f"{self.path.name} has no component '{part}'",
                cause=f"its parts are {', '.join(item.name for item in self.parts)}",
                fix=f"give one of them as `component`, or point at it: {self.path / self.parts[0].folder}",
            )
        return self.path / found[0].model


@dataclass(frozen=True)
class BuildCheck:
    """A build folder beside its manifest. `files` are those that the manifest names, as they were built."""

    folder: Path
    missing: tuple[str, ...]
    changed: tuple[str, ...]
    extra: tuple[str, ...]
    files: tuple[FileDigest, ...]

    @property
    def whole(self) -> bool:
        return not (self.missing or self.changed or self.extra)


def read_build(folder: Path) -> BuildFolder:
    """The build, if every file of it is what was built. Files that somebody added are no concern here."""
    data = _manifest(folder)
    if not is_sealed(data):
        raise _not_as_built(folder, f"{MANIFEST} was changed")
    build = _parsed(folder, data)
    for file in build.files:
        state = _state(folder, file)
        if state is not None:
            raise _not_as_built(folder, f"{file.name} {'is missing' if state == 'missing' else 'was changed'}")
    return build


def check_build(folder: Path) -> BuildCheck:
    """Everything that differs from what was built."""
    data = _manifest(folder)
    sealed = is_sealed(data)
    try:
        files = _parsed(folder, data).files
    except InputError:
        if sealed:
            raise
        return BuildCheck(folder, (), (MANIFEST,), (), ())  # edited beyond reading: it names no files
    states = {file.name: _state(folder, file) for file in files}
    changed = [name for name, state in states.items() if state == "changed"]
    return BuildCheck(
        folder,
        missing=tuple(name for name, state in states.items() if state == "missing"),
        changed=tuple(changed if sealed else [MANIFEST, *changed]),
        extra=tuple(sorted(_present(folder) - {MANIFEST, DELIVERY_NOTE, *states})),
        files=files,
    )


def recorded_inputs(model: Path) -> InputSpec:
    """What an export recorded about the inputs of a model, if the model is that of a build, and nothing was changed."""
    part = _part_of(model)
    return () if part is None else part.inputs


def recorded_verdict(model: Path) -> BuildVerdict | None:
    """What the build said of this model, if it is that of a build, and nothing was changed."""
    part = _part_of(model)
    return None if part is None else part.verdict


def model_files(path: Path) -> tuple[FileDigest, ...]:
    """What a model is, by content: the file, and the weights or compiled parts beside it."""
    if stands_alone(path):
        return digests_of(path.parent, [path.name])
    return digests_of(path.parent, [file.name for file in facts(path).files if file.size_bytes is not None])


def digests_of(folder: Path, names: Iterable[str]) -> tuple[FileDigest, ...]:
    """The named files of a folder, each with its digest."""
    return tuple(FileDigest(name, file_digest(folder / name), (folder / name).stat().st_size) for name in names)


def _part_of(model: Path) -> BuildPart | None:
    places = ((model.parent, ""), (model.parent.parent, model.parent.name))
    return next((part for folder, place in places if (part := _part_at(folder, place, model)) is not None), None)


def _part_at(folder: Path, place: str, model: Path) -> BuildPart | None:
    if not (folder / MANIFEST).is_file() or not is_sealed(data := _manifest(folder)):
        return None
    for part in _parsed(folder, data).parts:
        own = next((file for file in part.files if file.name == part.model), None)
        if part.folder == place and folder / part.model == model and own is not None:
            return part if _state(folder, own) is None else None
    return None


def _manifest(folder: Path) -> bytes:
    if not (folder / MANIFEST).is_file():
        raise InputError(
            f"{folder} is not a build folder", cause=f"it has no {MANIFEST}", fix="give a folder that a build wrote"
        )
    try:
        return (folder / MANIFEST).read_bytes()
    except OSError as error:
        raise _unreadable(folder, error) from error


def _parsed(folder: Path, data: bytes) -> BuildFolder:
    try:
        document = loads(data)
        if document["schema_version"] != MANIFEST_VERSION:
            raise ValueError(f"it has version {document['schema_version']}, this is version {MANIFEST_VERSION}")
        parts = tuple(_part(component, _together(document)) for component in document["components"])
        links, recipe = tuple(map(dict, document["links"])), dict(document["recipe"])
        return BuildFolder(folder.absolute(), parts, links, recipe, _digests("", document.get("companions", ())))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(folder, error) from error


def _together(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What was asked of all parts at once."""
    agreement = document.get("agreement") or {}
    return [outcome for outcome in (document.get("accuracy"), agreement.get("outcome")) if outcome]


def _verdict(component: Mapping[str, Any], together: Sequence[Mapping[str, Any]]) -> BuildVerdict:
    outcomes = [*(stage.get("outcome") or {} for stage in component.get("stages", ())), *together]
    passed = weakest([component.get("passed"), *(outcome["passed"] for outcome in together)])
    wrong = [words for outcome in outcomes if outcome.get("passed") is False for words in _reasons(outcome)]
    return BuildVerdict(passed, tuple(wrong))


def _reasons(outcome: Mapping[str, Any]) -> list[str]:
    """Gates say it by check, targets and metrics in a sentence."""
    checks = [f"{check['name']}: {check['detail']}" for check in outcome.get("checks", ()) if check["passed"] is False]
    said = outcome.get("reasons") or [outcome.get("reason") or outcome.get("detail")]
    return checks or [words for words in said if words]


def _part(component: Mapping[str, Any], together: Sequence[Mapping[str, Any]]) -> BuildPart:
    place = str(component["folder"])
    files = _digests(place, component["files"])
    model = next(file.name for file in files if file.name.endswith(".onnx")) if files else ""
    inputs = typed(tuple[TensorSpec, ...], component["inputs"])
    return BuildPart(str(component["name"]), place, model, files, inputs, _verdict(component, together))


def _digests(place: str, files: Iterable[Mapping[str, Any]]) -> tuple[FileDigest, ...]:
    return tuple(FileDigest(_inside(place, file["name"]), str(file["sha256"]), int(file["size"])) for file in files)


def _inside(place: str, name: str) -> str:
    found = PurePosixPath(place, name)
    if found.is_absolute() or ".." in found.parts or "\\" in name:
        raise ValueError(f"{name} leads out of the folder")
    return str(found)


def _state(folder: Path, file: FileDigest) -> str | None:
    """How a file differs from what was built, or None."""
    path = folder / file.name
    if not path.is_file():
        return "missing"
    same = path.stat().st_size == file.size and file_digest(path) == file.sha256
    return None if same else "changed"


def _present(folder: Path) -> set[str]:
    found = set()
    for place, _, names in os.walk(folder):
        found |= {Path(place, name).relative_to(folder).as_posix() for name in names}
    return found


def _not_as_built(folder: Path, what: str) -> InputError:
    return InputError(f"{folder} is not what was built", cause=what, fix=f"`wright verify` lists it; {_AGAIN}")


def _unreadable(folder: Path, error: Exception) -> InputError:
    what = f"{type(error).__name__} {' '.join(str(error).split())[:160]}".rstrip()
    return InputError(f"{folder} cannot be read as a build", cause=f"{MANIFEST}: {what}", fix=_AGAIN)
