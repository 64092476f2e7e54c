"""Twenty kills of `wright matrix run` at random points: it goes on into another folder, and makes nothing twice.

A matrix runs to its end once: that is the reference. Then the driver is killed (SIGKILL) when its ledger and its store
have a random number of events and artifacts and a random part of a second more has passed, and the matrix is asked for
again with a fresh output folder, in the same home. Every cell must end as in the reference with the same models; every
artifact that was there at the kill must be the very same one afterwards; there must be as many as the reference made;
and cells that were finished must not have been tried again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bench.fix_kills import WRIGHT, Place
from modelwright.errors import WrightError
from modelwright.store import Store

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.models import conv_net, mlp, save

KILLS, SEED = 20, 13
TARGETS = ("cpu", "openvino-npu", "qnn-npu")
_DONE = ("validated", "built")
_PATIENCE_S = 900.0
Cells = dict[str, tuple[str, str, int]]
"""State, key of the build and attempts, by the id of the cell."""


@dataclass(frozen=True)
class MatrixKill:
    """How one went: at the kill there were so many `events` in the ledger, `finished` cells and `made` artifacts of
    `wanted`; `rebuilt` of them are others now."""

    events: int
    finished: int
    made: int
    wanted: int
    rebuilt: int
    tried_again: int
    left_running: int
    same_cells: bool
    same_models: bool

    @property
    def good(self) -> bool:
        return self.same_cells and self.same_models and not (self.rebuilt or self.tried_again or self.left_running)


@dataclass(frozen=True)
class MatrixWorld(Place):
    """A home of its own; `build` is the list of models, `output` the folder of the run."""

    output: str = "first"

    @property
    def words(self) -> list[str]:
        targets = [word for target in TARGETS for word in ("--target", target)]
        return [WRIGHT, "matrix", "run", str(self.build), *targets, "-o", self.output, "--json"]

    def into(self, output: str) -> MatrixWorld:
        return MatrixWorld(self.folder, self.build, self.token, output)

    def ledger(self) -> tuple[int, set[str]]:
        """How many events there are, and which cells are finished."""
        root = self.folder / "home" / "store"
        if not (root / "ledger.sqlite").is_file():
            return 0, set()
        with Store(root, read_only=True) as store:
            ledger = store.ledger()
            try:
                done = {name for name, event in ledger.latest().items() if event.state in _DONE}
                return len(ledger.events()), done
            finally:
                ledger.close()

    def steps(self) -> int:
        """How far it is: events and artifacts."""
        root = self.folder / "home" / "store"
        if not root.is_dir():
            return 0
        with contextlib.suppress(WrightError), Store(root, read_only=True) as store:
            return self.ledger()[0] + len(store.entries())
        return 0

    def models(self) -> dict[str, str]:
        """By the folder they were written to."""
        base = self.folder / self.output
        found = sorted(base.rglob("model.onnx"))
        return {path.relative_to(base).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def run(kills: int = KILLS, seed: int = SEED) -> dict[str, object]:
    coin, found = random.Random(seed), []
    with tempfile.TemporaryDirectory(prefix="matrix-kills-") as folder:
        rows = _rows(Path(folder))
        whole = _world(Path(folder, "whole"), rows)
        cells = _cells(whole.finish())
        for count in range(kills):
            found.append(_kill(_world(Path(folder, str(count)), rows), coin, whole, cells))
            print(found[-1], flush=True)
    return {
        "what": __doc__.partition("\n")[0],
        "cells": len(cells),
        "kills": len(found),
        "good": sum(one.good for one in found),
        "met": all(one.good for one in found),
        "fates": [asdict(one) | {"good": one.good} for one in found],
    }


def _rows(folder: Path) -> Path:
    rng, rows = np.random.default_rng(0), []
    for name, model, shape in (("net", conv_net(), (3, 8, 8)), ("mlp", mlp(), (4,))):
        np.savez(folder / f"{name}.npz", x=rng.standard_normal((40, *shape)).astype(np.float32))
        rows.append({"model": str(save(model, folder, f"{name}.onnx")), "data": str(folder / f"{name}.npz")})
    (folder / "models.json").write_text(json.dumps(rows))
    return folder / "models.json"


def _world(folder: Path, rows: Path) -> MatrixWorld:
    folder.mkdir()
    return MatrixWorld(folder, rows, uuid.uuid4().hex)


def _cells(answer: dict[str, object]) -> Cells:
    rows = answer["cells"]
    assert isinstance(rows, list)
    return {one["cell"]["id"]: (one["state"], one["facts"]["key"], one["attempt"]) for one in rows}


def _kill(world: MatrixWorld, coin: random.Random, whole: MatrixWorld, wanted: Cells) -> MatrixKill:
    _until(world, coin.randrange(whole.steps()), coin.uniform(0.0, 1.0))
    left = world.left_running()
    events, finished = world.ledger()
    before = world.artifacts()
    again = world.into("again")
    cells = _cells(again.finish())
    after, every = world.artifacts(), whole.artifacts()
    rebuilt = sum(after.get(key) != created for key, created in before.items())
    return MatrixKill(
        events=events,
        finished=len(finished),
        made=len(before),
        wanted=len(every),
        rebuilt=rebuilt + len(after.keys() ^ every.keys()),
        tried_again=sum(cells[cell][2] != 1 for cell in finished),
        left_running=left,
        same_cells={cell: row[:2] for cell, row in cells.items()} == {cell: row[:2] for cell, row in wanted.items()},
        same_models=again.models() == whole.models(),
    )


def _until(world: MatrixWorld, steps: int, more_s: float) -> None:
    process, end = world.start(), time.monotonic() + _PATIENCE_S
    while world.steps() < steps and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=more_s)
    process.kill()
    process.wait(timeout=60)
