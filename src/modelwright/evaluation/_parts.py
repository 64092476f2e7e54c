"""A build of several graphs as its manifest describes it."""

from __future__ import annotations

from modelwright.errors import InputError
from modelwright.models import MANIFEST, MODEL, BuildFolder
from modelwright.stages.decode import Parts, arranged
from modelwright.stages.export import Link


def parts_of(build: BuildFolder) -> Parts:
    """How the graphs of a build work together."""
    folder, names = build.path, tuple(part.name for part in build.parts)
    try:
        links = tuple(Link(**link) for link in build.links)
    except TypeError as error:
        raise InputError(
            f"{folder.name} cannot be read as a build", cause=f"{MANIFEST}: {error}", fix="Build it again."
        ) from error
    found = arranged(names, links)
    if found is None:
        raise InputError(
            f"{folder.name} is a build of several models",
            cause=f"its parts are {', '.join(names)}, and how they work together is not known here",
            fix=f"Evaluate one part with `outputs`, for example {folder.name}/{next(iter(names), '')}/{MODEL}.",
        )
    first, second = str(build.model(found.first)), str(build.model(found.second))
    return Parts(found.kind, first, second, links, (found.first, found.second))
