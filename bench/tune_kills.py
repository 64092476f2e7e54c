"""Twenty kills of `wright tune` at random points: the same command goes on and ends as if nobody had disturbed it.

A search on a simulated device (the real command, real builds and real sessions; only what a unit takes is told by a
known truth) runs to its end once. Then it is killed (SIGKILL) when its journal has a random number of lines and some
more time has passed, and the same command is given again in the same home, until it ends. Champion, rows,
interval, number of units and the delivered model must be those of the undisturbed search.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.fix_kills import MODEL, Place

SCRIPT = Path(__file__).with_name("_simulated_tune.py")
ASKED = ("--budget", "1h", "--axis", "level", "--axis", "denormals", "--axis", "spinning", "--axis", "threads")
KILLS, SEED = 20, 12
_PATIENCE_S = 900.0
_SAID = ("champion", "reason", "rows", "finding", "units", "settings", "recipe", "reproducible")


@dataclass(frozen=True)
class Killed:
    """How one went: `lines` of the journal were there at the kill."""

    lines: int
    of: int
    left_running: int
    same_answer: bool
    same_model: bool

    @property
    def good(self) -> bool:
        return self.same_answer and self.same_model and not self.left_running


@dataclass(frozen=True)
class Search(Place):
    """A world of its own for one search."""

    @property
    def words(self) -> list[str]:
        return [sys.executable, str(SCRIPT), "tune", str(self.build), *ASKED, "--json", "-o", "repaired", "--overwrite"]

    def lines(self) -> int:
        with contextlib.suppress(OSError):
            return sum(len(file.read_bytes().splitlines()) for file in self.folder.glob("home/searches/*.jsonl"))
        return 0


def run(kills: int = KILLS, seed: int = SEED) -> dict[str, object]:
    coin, found = random.Random(seed), []
    with tempfile.TemporaryDirectory(prefix="tune-kills-") as folder:
        whole = _search(Path(folder, "whole"))
        wanted = _plain(whole.finish())
        for count in range(kills):
            found.append(killed(_search(Path(folder, str(count))), coin, whole, wanted))
            print(found[-1], flush=True)
    return {
        "what": __doc__.partition("\n")[0],
        "champion": wanted["champion"],
        "units": wanted["units"],
        "kills": len(found),
        "good": sum(one.good for one in found),
        "met": all(one.good for one in found),
        "fates": [asdict(one) for one in found],
    }


def killed(search: Search, coin: random.Random, whole: Search, wanted: dict[str, Any]) -> Killed:
    of = whole.lines()
    _until(search, coin.randrange(of), coin.uniform(0.0, 0.5))
    left, lines = search.left_running(), search.lines()
    answer = _plain(search.finish())
    return Killed(lines, of, left, answer == wanted, _model(search) == _model(whole))


def _search(folder: Path) -> Search:
    folder.mkdir()
    return Search(folder, MODEL, uuid.uuid4().hex)


def _until(search: Search, lines: int, more_s: float) -> None:
    process, end = search.start(), time.monotonic() + _PATIENCE_S
    while search.lines() < lines and process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=more_s)
    process.kill()
    process.wait(timeout=60)


def _plain(answer: dict[str, Any]) -> dict[str, Any]:
    """What was found, without times and without what was resumed."""
    return {name: answer[name] for name in _SAID}


def _model(search: Search) -> str:
    return hashlib.sha256((search.folder / "repaired" / "model.onnx").read_bytes()).hexdigest()
