"""Which files a contribution may touch: that follows from its effort, not from what it says about itself."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from modelwright.support._claim import CLAIM
from modelwright.support._statement import EVIDENCE
from modelwright.support._words import Effort

REPORT = "report.md"
_RECORDS = ("entry.toml", CLAIM, EVIDENCE, REPORT, "report.json", "report.html", "probe.json", "logs/*")
_GENERATED = ("src/modelwright/recipes/index.json", "docs/support.md")
_FAMILY = ("src/modelwright/stages/export/families/[a-z]*.py", "src/modelwright/knowledge/families.toml")
_BESIDE = ("tests/*", "bench/families.py", "CHANGELOG.md", "docs/*.md")
RULES = (
    "src/modelwright/support/*",
    "src/modelwright/judge/*",
    "src/modelwright/metrics/*",
    "src/modelwright/evaluation/*",
    "src/modelwright/stages/validate/*",
    "src/modelwright/stages/check/*",
    "src/modelwright/recipes/_*.py",
    "Makefile",
    "pyproject.toml",
    "constraints.txt",
)
"""What judges contributions: a person decides about it."""


def allowed_files(effort: Effort, folder: str, script: str | None = None) -> tuple[str, ...]:
    """Patterns of what a contribution in `folder` may touch; `script` is the file of its metric."""
    place = folder.strip("/")
    own = [f"{place}/{name}" for name in (*_RECORDS, *(() if effort == "none" else ("recipe.toml", "*.json", "*.txt")))]
    own += [] if script is None else [f"{place}/{script}"]
    if effort in ("family", "shared"):
        own += [f"{place}/*.py", *_FAMILY, *_BESIDE]
    if effort == "shared":
        own.append("*")
    return (*own, *_GENERATED)


def outside_effort(changed: Sequence[str], effort: Effort, folder: str, script: str | None = None) -> tuple[str, ...]:
    """Those of the changed files that the effort does not allow."""
    patterns = allowed_files(effort, folder, script)
    return tuple(name for name in changed if not any(fnmatchcase(name, pattern) for pattern in patterns))


def rules_touched(changed: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in changed if any(fnmatchcase(name, pattern) for pattern in RULES))
