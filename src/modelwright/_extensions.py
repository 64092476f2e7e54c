"""What other packages add to wright: objects they name in their entry points."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from modelwright._installed import metadata_folders
from modelwright._lazy import lazy
from modelwright.errors import ExecutionError

if TYPE_CHECKING:
    import importlib.metadata as metadata
    from importlib.metadata import EntryPoint
else:
    metadata = lazy("importlib.metadata")

T = TypeVar("T")
EPS = "modelwright.eps"
PASSES = "modelwright.passes"
TASKS = "modelwright.tasks"
METRICS = "modelwright.metrics"
TELEMETRY = "modelwright.telemetry"
COMMANDS = "modelwright.commands"
FAMILIES = "modelwright.families"


@functools.cache
def extensions(group: str) -> Mapping[str, EntryPoint]:
    """The entry points of a group by name. Nothing is imported."""
    if not any(group in text for text in _entry_point_files()):
        return {}
    return {found.name: found for found in sorted(metadata.entry_points(group=group), key=lambda found: found.name)}


def extension_packages(group: str) -> tuple[str, ...]:
    """The distributions behind a group: their versions shape what their objects make."""
    return tuple(sorted({found.dist.name for found in extensions(group).values() if found.dist}))


def load_extension(group: str, name: str, kind: type[T]) -> T:
    """The object behind an entry point; one that cannot be imported, or is something else, is said to be that."""
    found = extensions(group)[name]
    try:
        value = found.load()
    except Exception as error:
        raise broken_extension(found, f"{type(error).__name__}: {error}") from error
    if not isinstance(value, kind):
        raise broken_extension(found, f"{found.value} is a {type(value).__name__}, not a {kind.__name__}")
    return value


def load_function(group: str, name: str) -> Callable[..., Any]:
    found: Any = load_extension(group, name, object)
    if not callable(found):
        raise broken_extension(extensions(group)[name], "it cannot be called")
    return found  # type: ignore[no-any-return]


def broken_extension(found: EntryPoint, cause: str) -> ExecutionError:
    package = found.dist.name if found.dist else "another package"
    return ExecutionError(
        f"the extension {found.name} ({found.group}) of {package} cannot be used",
        cause=cause,
        fix=f"correct or uninstall {package}",
    )


@functools.cache
def _entry_point_files() -> tuple[str, ...]:
    """What is installed, as text: most have no extension."""
    found = []
    for folder in metadata_folders():
        try:
            with open(f"{folder}/entry_points.txt", encoding="utf-8") as file:  # noqa: PTH123 - pathlib is not free
                found.append(file.read())
        except (OSError, ValueError):
            continue
    return tuple(found)
