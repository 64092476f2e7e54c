"""A runtime: another interpreter with its own packages, driven like our own."""

from __future__ import annotations

from pathlib import Path

from modelwright._dataclass import dataclass


@dataclass(frozen=True)
class Runtime:
    """`packages` is what was asked for, `versions` what got installed, `created` a UTC time."""

    name: str
    python: Path
    packages: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    created: str = ""

    def version(self, package: str) -> str | None:
        """The installed version of a package, or None."""
        return dict(self.versions).get(package)
