"""A command in a process and a store of its own, and what it cost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WRIGHT = str(Path(sys.executable).with_name("wright"))
Row = dict[str, Any]


@dataclass(frozen=True)
class Cost:
    """`peak_bytes` is the largest resident set of one process, pages of mapped files and all; `held_bytes` is the most
    that all processes together held and the system could not have taken back. Limits on memory are about that."""

    cpu_s: float
    peak_bytes: int
    held_bytes: int
    code: int


@dataclass(frozen=True)
class Place:
    """A folder of its own with an empty store."""

    folder: Path

    def wright(self, *words: object, good: Sequence[int] = (0,), longest_s: int | None = None) -> Cost:
        return _run([WRIGHT, *map(str, words)], self._environment, good, self.folder / "log.txt", longest_s)

    def answer(self, *words: object) -> Row:
        """What a command says with `--json`."""
        command = [WRIGHT, *map(str, words), "--json"]
        told = subprocess.run(command, env=self._environment, cwd=self.folder, stdout=subprocess.PIPE, check=True)
        found: Row = json.loads(told.stdout)
        return found

    def bare(self, script: str, *words: object, longest_s: int | None = None) -> Cost:
        return _run(
            [sys.executable, "-c", script, *map(str, words)],
            self._environment,
            (0, -signal.SIGXCPU),
            self.folder / "log.txt",
            longest_s,
        )

    def forget(self) -> None:
        shutil.rmtree(self.folder / "home", ignore_errors=True)

    def stored(self) -> int:
        return bytes_in(self.folder / "home")

    @property
    def _environment(self) -> dict[str, str]:
        """An installed package has its bytecode, whatever was said to the process that measures it."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**kept, "MODELWRIGHT_HOME": str(self.folder / "home")}


_LAUNCH = str(Path(__file__).with_name("_launch.py"))
# A bare call that takes more is stopped: its cost is at least this, and the ratio at most what it says.
LONGEST_S = 600


def _run(
    command: list[str],
    environment: Mapping[str, str],
    good: Sequence[int],
    log: Path,
    longest_s: int | None = None,
) -> Cost:
    launch = [sys.executable, "-S", _LAUNCH, str(log), str(longest_s or LONGEST_S), *command]
    told = subprocess.run(launch, env=environment, cwd=log.parent, stdout=subprocess.PIPE, check=True).stdout
    cost = Cost(*json.loads(told))
    if cost.code not in good:
        raise RuntimeError(f"{command[:3]} ended with {cost.code}: {log.read_text(errors='replace')[-2000:]}")
    return cost


def bytes_in(folder: Path) -> int:
    """What the files take, those that are linked twice once."""
    stats = [entry.stat() for entry in folder.rglob("*") if entry.is_file()]
    return sum({(stat.st_dev, stat.st_ino): stat.st_size for stat in stats}.values())


@contextmanager
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".scale-") as folder:
        yield Place(Path(folder))


def in_turns(bare: Callable[[], Cost], ours: Callable[[], Cost], turns: int = 5) -> tuple[Cost, Cost]:
    """The cheapest run of each (bare, ours), one after the other: for work that is over before others let it be."""
    both = [(bare(), ours()) for _ in range(turns)]
    return min((one for one, _ in both), key=lambda cost: cost.cpu_s), min(
        (one for _, one in both), key=lambda cost: cost.cpu_s
    )


def beside(ours: Cost, bare: Cost) -> Row:
    stopped = {"bare_stopped": True} if bare.code else {}
    return {
        **stopped,
        "ours_cpu_s": round(ours.cpu_s, 2),
        "bare_cpu_s": round(bare.cpu_s, 2),
        "cpu_ratio": round(ours.cpu_s / bare.cpu_s, 2),
        "ours_peak_bytes": ours.peak_bytes,
        "bare_peak_bytes": bare.peak_bytes,
        "ours_held_bytes": ours.held_bytes,
        "bare_held_bytes": bare.held_bytes,
    }
