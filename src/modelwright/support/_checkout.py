"""What is reviewed: a fresh clone of a commit, or a copy of a folder; no hook and no filter runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright.errors import ExecutionError, InputError, UsageError

_LIMIT_S = 600
_BASES = ("origin/main", "main", "origin/master", "master")
_MOST_BYTES = 2 << 30


@dataclass(frozen=True)
class CheckedOut:
    """`folder` is the contribution in the copy; `name` is where it lies in its repository. `changed` are the files that
    the commit changes against `base`; None where nobody can tell."""

    folder: Path
    name: str
    commit: str | None
    base: str | None
    changed: tuple[str, ...] | None


def checked_out(folder: Path, ref: str | None, base: str | None, place: Path) -> CheckedOut:
    if not folder.is_dir() and ref is None:
        raise InputError(f"{folder} is not a folder", cause="a contribution is one", fix="give the folder of a claim")
    if ref is None:
        return CheckedOut(_copied(folder, place), folder.name, None, None, None)
    root = _root(folder)
    # A folder that only the commit has is found from the one above it.
    name = Path(os.path.abspath(folder)).relative_to(root).as_posix()  # noqa: PTH100 - no link is followed
    commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if not commit:
        raise UsageError(f"there is no commit '{ref}'", cause=f"{root.name} does not know it", fix="fetch it first")
    place.mkdir(parents=True, exist_ok=True)
    clone = place / "clone"
    _git(root, "clone", "--quiet", "--no-local", "--no-checkout", str(root), str(clone), where=place)
    if _git(clone, "cat-file", "-e", commit, quiet=True) is None:
        _git(clone, "fetch", "--quiet", "origin", commit)
    _git(clone, "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", commit)
    if not (clone / name).is_dir():
        raise InputError(f"{name} is not in {commit[:12]}", cause="the commit has no such folder", fix="check the path")
    _refuse_links(clone / name)
    against = _base(root, commit, base)
    return CheckedOut(clone / name, name, commit, against, _changed(clone, root, commit, against))


def _root(folder: Path) -> Path:
    place = folder
    while not place.is_dir() and place != place.parent:
        place = place.parent
    found = _git(place, "rev-parse", "--show-toplevel", quiet=True)
    if found is None:
        raise UsageError(f"{folder} is in no repository", cause="a commit is asked for", fix="leave `ref` out")
    return Path(found)


def _copied(folder: Path, place: Path) -> Path:
    _refuse_links(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and "builds" not in path.parts)
    if size > _MOST_BYTES:
        raise InputError(f"{folder} is too large", cause=f"it holds {size} bytes", fix="a contribution has no weights")
    target = place / "copy" / folder.absolute().name
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("builds", ".git"))
    return target


def _refuse_links(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_symlink():
            raise InputError(f"{path.name} is a link", cause="it leads somewhere else", fix="put the file itself there")


def _base(root: Path, commit: str, said: str | None) -> str | None:
    for name in (said,) if said is not None else _BASES:
        found = _git(root, "merge-base", "--end-of-options", str(name), commit, quiet=True)
        if found:
            return found
    if said is not None:
        raise UsageError(f"'{said}' is no base of it", cause="they have no commit in common", fix="name another `base`")
    return None


def _changed(clone: Path, root: Path, commit: str, base: str | None) -> tuple[str, ...] | None:
    if base is None or base == commit:
        return None
    if _git(clone, "cat-file", "-e", base, quiet=True) is None:
        _git(clone, "fetch", "--quiet", "origin", base)
    found = _git(clone, "diff", "--name-only", "--no-renames", "-z", base, commit) or ""
    return tuple(sorted(name for name in found.split("\0") if name))


def _git(repository: Path, *words: str, where: Path | None = None, quiet: bool = False) -> str | None:
    """With no configuration but the repository's own, and nothing of it that runs a program."""
    safe = (
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "protocol.ext.allow=never",
        "filter.lfs.smudge=",
        "filter.lfs.required=false",
    )
    command = ["git", *(word for one in safe for word in ("-c", one))]
    command += ["-C", str(where or repository), *words]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = {**plain, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}
    environment["GIT_LFS_SKIP_SMUDGE"] = "1"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ExecutionError("git cannot be run", cause=str(error), fix="install git, or leave `ref` out") from None
    if done.returncode == 0:
        return done.stdout.strip("\n")
    if quiet or ("--quiet" in words and words[0] == "rev-parse"):
        return None
    raise ExecutionError(f"git {words[0]} failed", cause=done.stderr.strip()[-300:], fix="check the repository")
