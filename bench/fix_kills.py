"""Twenty kills of `debug --fix` at random points of the search: it goes on, finds the same, and makes nothing twice.

A search runs to its end once, in a home of its own: that is the reference. Then it is killed (SIGKILL) when the store
holds a random number of its artifacts (candidates, scores, diagnosis) and a random part of a second more has passed,
and the same command is given again in the same home. What it answers and delivers must be what the reference did; every
artifact that was there before the kill must be the very same one afterwards; and there must be as many as the
reference made, so that nothing was made again under another key.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from modelwright.store import Store

ROOT = Path(__file__).parents[1]
MODEL, DATA = ROOT / "demo/fashion_cnn.onnx", ROOT / "demo/fashion_test.npz"
WRIGHT = str(Path(sys.executable).with_name("wright"))
KILLS, SEED = 20, 11
# One scale per tensor, and calibrated on two dark images: a search of many steps on a model that is quick.
RECIPE = '[quantize]\nper_channel = false\nop_types = ["all"]\nsamples = 2\n'
GIVEN = ("--data", str(DATA), "--scale", "1/255")
SEARCH = ("--fix", "--target-sqnr", "24", "--samples", "32", "--json", "-o", "repaired")
_MARKER = "WRIGHT_FIX_KILL"
_PATIENCE_S = 600.0


@dataclass(frozen=True)
class Kill:
    """How one went. `made_before` of `wanted` artifacts were there at the kill; `rebuilt` of them are others now."""

    wanted: int
    made_before: int
    made_after: int
    rebuilt: int
    left_running: int
    same_answer: bool
    same_model: bool
    seconds_to_go_on: float

    @property
    def good(self) -> bool:
        same = self.same_answer and self.same_model and self.made_after == self.wanted
        return same and not (self.rebuilt or self.left_running)


@dataclass(frozen=True)
class Place:
    """A world of its own for one search: home, temporary folder, where it delivers to."""

    folder: Path
    build: Path
    token: str

    @property
    def words(self) -> list[str]:
        seen = ("--calibrated-on", str(self.build.with_name("dark.npz")))
        return [WRIGHT, "debug", str(self.build), "--reference", str(MODEL), *GIVEN, *seen, *SEARCH]

    @property
    def environment(self) -> dict[str, str]:
        own = {"MODELWRIGHT_HOME": str(self.folder / "home"), "TMPDIR": str(self.folder), _MARKER: self.token}
        return {**os.environ, **own}

    def start(self) -> subprocess.Popen[bytes]:
        nowhere = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(self.words, cwd=self.folder, env=self.environment, **nowhere)

    def finish(self) -> dict[str, Any]:
        done = subprocess.run(
            self.words, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=_PATIENCE_S
        )
        if done.returncode != 0:
            raise RuntimeError(f"exit {done.returncode}: {done.stderr[-2000:]}")
        return dict(json.loads(done.stdout))

    def artifacts(self) -> dict[str, float]:
        """Everything that was made under this home, and when; not the records of what was answered."""
        if not (self.folder / "home" / "store").is_dir():
            return {}
        with Store(self.folder / "home" / "store") as store:
            return {entry.key.digest: entry.created for entry in store.entries() if not entry.tags}

    def delivered(self) -> str:
        return hashlib.sha256((self.folder / "repaired" / "model.onnx").read_bytes()).hexdigest()

    def left_running(self) -> int:
        """Processes of this world that are still there after a while."""
        end = time.monotonic() + 60.0
        while (count := self._marked()) and time.monotonic() < end:
            time.sleep(0.05)
        return count

    def _marked(self) -> int:
        count, mark = 0, f"{_MARKER}={self.token}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                alive = (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
                count += alive and mark in (process / "environ").read_bytes()
        return count


def run(kills: int = KILLS, seed: int = SEED) -> dict[str, object]:
    coin, found = random.Random(seed), []
    with tempfile.TemporaryDirectory(prefix="fix-kills-") as folder:
        build = _naive(Path(folder))
        whole = _place(Path(folder, "whole"), build)
        answer = whole.finish()
        for count in range(kills):
            found.append(_kill(_place(Path(folder, str(count)), build), coin, whole, _plain(answer)))
            print(found[-1], flush=True)
    return {
        "what": __doc__.partition("\n")[0],
        "candidates": answer["fix"]["builds"],
        "raised": len(answer["fix"]["raised"]),
        "kills": len(found),
        "good": sum(one.good for one in found),
        "met": all(one.good for one in found),
        "fates": [asdict(one) | {"good": one.good} for one in found],
    }


def _place(folder: Path, build: Path) -> Place:
    folder.mkdir()
    return Place(folder, build, uuid.uuid4().hex)


def _naive(folder: Path) -> Path:
    """A poor int8 build. Its gate may fail: that is what a repair is for."""
    (folder / "naive.toml").write_text(RECIPE)
    with np.load(DATA) as data:
        np.savez(folder / "dark.npz", image=data["image"][:2].astype(np.float32) / 255 * 0.3)
    made = ("-r", str(folder / "naive.toml"), "--precision", "w8a8", "--target", "cpu")
    words = ("build", str(MODEL), *made, "--data", str(folder / "dark.npz"))
    home = {**os.environ, "MODELWRIGHT_HOME": str(folder / "first")}
    done = subprocess.run([WRIGHT, *words, "-o", str(folder / "naive")], env=home, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr[-2000:])
    return folder / "naive"


def _kill(place: Place, coin: random.Random, whole: Place, wanted: dict[str, Any]) -> Kill:
    total = len(whole.artifacts())
    _until(place, coin.randrange(1, total), coin.uniform(0.0, 1.0))
    left, before, began = place.left_running(), place.artifacts(), time.monotonic()
    answer = place.finish()
    took, after = time.monotonic() - began, place.artifacts()
    return Kill(
        wanted=total,
        made_before=len(before),
        made_after=len(after),
        rebuilt=sum(after.get(key) != created for key, created in before.items()),
        left_running=left,
        same_answer=_plain(answer) == wanted,
        same_model=place.delivered() == whole.delivered(),
        seconds_to_go_on=round(took, 1),
    )


def _until(place: Place, made: int, more_s: float) -> None:
    """Start the search and kill it when so much is made."""
    process, end = place.start(), time.monotonic() + _PATIENCE_S
    while len(place.artifacts()) < made and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=more_s)
    process.kill()
    process.wait(timeout=60)


def _plain(answer: dict[str, Any]) -> dict[str, Any]:
    """What the repair found, without times and without where it came from."""
    found = {key: value for key, value in answer["fix"].items() if key != "from_store"}
    untimed = {
        name: [{key: value for key, value in row.items() if key != "p50_ms"} for row in found[name]]
        for name in ("rows", "front")
    }
    return {**found, **untimed}
