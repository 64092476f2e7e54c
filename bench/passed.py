"""Is what the gate calls passed of use? Every trained model of `bench.zoo`, built and judged with data of its own.

Each is built for cpu (w8a8) and for qnn-npu (w8a16, w8a8). Beside the gate's word stands the drop of the task's metric
against the float model with 95 % bounds of paired resampling: of cpu builds as this CPU executes them, of qnn-npu
builds as their graph says. A row misses when a build passed although it lost more than the bound of its metric, or
failed although it is surely within it. A refusal is no miss, nor is a build that the gate passes and the target's own
simulator computes otherwise; both are listed.

All of it takes hours, so it may be done in pieces: every row is written when it is there, and a row that the same
stages made is not made again. `python -m bench.passed NAME ...` does the named models only.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bench import written, zoo
from modelwright import home
from modelwright.errors import WrightError
from modelwright.models import resolve
from modelwright.pipeline import BuildFailure, BuildResult, RecipeChoices, build_all, deliver, resolve_recipe
from modelwright.stages.check import CHECK
from modelwright.stages.export import EXPORT
from modelwright.stages.optimize import OPTIMIZE
from modelwright.stages.quantize import QUANTIZE
from modelwright.stages.validate import VALIDATE
from modelwright.store import Store
from modelwright.targets import parse_target
from modelwright.vocabulary import Data

NAME = "passed"
FLOAT = ("cpu", "fp32")
BUILDS = (("cpu", "w8a8"), ("qnn-npu", "w8a16"), ("qnn-npu", "w8a8"))
MADE_BY = {stage.name: stage.version for stage in (EXPORT, OPTIMIZE, QUANTIZE, VALIDATE, CHECK)}


def run(*names: str) -> dict[str, Any]:
    """Rows of other stages, or of models that are none any more, are left out of what is written."""
    kept = [row for row in written.read(NAME).get("rows", []) if row.get("made_by") == MADE_BY]
    rows = {_name(row): row for row in kept if row["model"] in zoo.MODELS}
    for name in names or zoo.MODELS:
        wanted = [build for build in BUILDS if f"{name} {build[0]} {build[1]}" not in rows]
        for trained in zoo.models(name) if wanted else ():
            for row in rows_of(trained, wanted):
                rows[_name(row)] = row
                written.write(NAME, summed(list(rows.values())))
    return summed(list(rows.values()))


def summed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """`met` only where no model is left out."""
    built = [row for row in rows if "drop" in row]
    order = [f"{name} {target} {precision}" for name in zoo.MODELS for target, precision in BUILDS]
    missing = sorted({*order} - {_name(row) for row in rows}, key=order.index)
    return {
        "models": len({row["model"] for row in built}),
        "with_labels": len({row["model"] for row in built if row["labels"] == "real"}),
        "rows": sorted(rows, key=lambda row: order.index(_name(row))),
        "refused": [_name(row) for row in rows if "drop" not in row],
        "not_reached": missing,
        "target_says_no": [_name(row) for row in built if row["gate"] and row["passed"] is False],
        "passed_but_useless": [_name(row) for row in built if row["miss"] == "passed but useless"],
        "failed_but_good": [_name(row) for row in built if row["miss"] == "failed but good"],
        "met": not missing and all(row.get("miss") is None for row in built),
    }


def rows_of(trained: zoo.Trained, wanted: Sequence[tuple[str, str]] = BUILDS) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        whole, *built = builds(trained, (FLOAT, *wanted), Path(folder))
        before = _scores(trained, whole.model) if isinstance(whole, Made) else None
        for build, one in zip(wanted, built, strict=True):
            yield _row(trained, build, one, whole, before)


def _scores(trained: zoo.Trained, model: Path, *, as_written: bool = False) -> zoo.Scores:
    """Kept beside the builds: the same file gives the same answers to the same samples."""
    files = sorted(model.parent.glob(f"{model.name}*"))
    told = [trained.name, str(as_written), _zoo_digest(), _asked(trained)]
    told += [hashlib.sha256(f.read_bytes()).hexdigest() for f in files]
    kept = _kept() / "scores" / f"{hashlib.sha256(json.dumps(told).encode()).hexdigest()}.npy"
    if kept.is_file():
        return np.asarray(np.load(kept))
    found = trained.score(zoo.answers(model, as_written=as_written))
    kept.parent.mkdir(parents=True, exist_ok=True)
    np.save(kept, found)
    return found


@functools.cache
def _zoo_digest() -> str:
    """What the models are fed and how they are scored is code."""
    sources = sorted(Path(zoo.__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


def _asked(trained: zoo.Trained) -> str:
    """Some samples are files of this machine, which change."""
    found = hashlib.sha256()
    for sample in trained.judged:
        for name in sorted(sample):
            found.update(name.encode() + np.ascontiguousarray(sample[name]).tobytes())
    return found.hexdigest()


def _kept() -> Path:
    """A store of its own, so that a run goes on where it was stopped."""
    return home.home() / "bench"


class Made:
    """A build that came to an end, and its file."""

    def __init__(self, result: BuildResult, model: Path) -> None:
        self.result, self.model = result, model


def builds(trained: zoo.Trained, wanted: Sequence[tuple[str, str]], folder: Path) -> list[Made | WrightError]:
    """All in one call, so that what they share is made once; a target keeps the portable file, not its blob."""
    source: Any = resolve(str(trained.path))
    data = Data(str(trained.write_calibration(folder)))
    with Store(_kept() / "store") as store:
        choices = [RecipeChoices(precision=None if p == "fp32" else p, data=data, compile=False) for _, p in wanted]
        recipes = [
            resolve_recipe(source, parse_target(target), chosen, dict(trained.sizes))
            for (target, _), chosen in zip(wanted, choices, strict=True)
        ]
        found: list[Made | WrightError] = []
        for number, result in enumerate(build_all(source, recipes, store=store)):
            if isinstance(result, BuildFailure):
                found.append(result.error)
                continue
            place = deliver(result, folder / str(number), store=store)
            found.append(Made(result, next(place.rglob("*.onnx"))))
    return found


def _row(trained: zoo.Trained, wanted: tuple[str, str], made: Made | WrightError, whole: Any, before: Any) -> Any:
    row: dict[str, Any] = {
        "model": trained.name,
        "kind": trained.kind,
        "labels": trained.labels,
        "metric": trained.metric,
    }
    row |= {"target": wanted[0], "precision": wanted[1], "bound": trained.bound, "made_by": MADE_BY}
    if isinstance(made, WrightError) or before is None:
        row |= {"refused": f"{made.problem}: {made.cause}" if isinstance(made, WrightError) else "no float build"}
        return _told(row)
    started = time.perf_counter()
    after = _scores(trained, made.model, as_written=wanted[0] != "cpu")
    lost = zoo.drop(trained, before, after)
    gate = made.result.components[0].validation
    row |= {"passed": made.result.passed, "float": trained.value(before), "built": trained.value(after)}
    check = made.result.components[0].check
    # Where the target could not be asked, the gate's own word counts; what the target computes otherwise the metric,
    # which is of the graph as written, does not see.
    word = None if check is not None and check.passed is False else gate.passed
    row |= {**asdict(lost), "samples": len(before), "miss": _miss(word, lost, trained.bound)}
    row |= {"gate": gate.passed, "target_says": None if check is None else check.reason or check.passed}
    row |= {"gate_worst_cosine": gate.worst_cosine, "gate_samples": gate.samples, "gate_note": gate.note}
    row |= {"gate_says_no": [f"{check.name}: {check.detail}" for check in gate.checks if check.passed is False]}
    row |= {"size_of_float": round(made.model.stat().st_size / whole.model.stat().st_size, 3)}
    return _told({**row, "scored_in_s": round(time.perf_counter() - started, 1)})


def _miss(passed: bool | None, lost: zoo.Drop, bound: float) -> str | None:
    if passed and lost.drop > bound:
        return "passed but useless"
    return "failed but good" if passed is False and lost.high <= bound else None


def _told(row: dict[str, Any]) -> dict[str, Any]:
    """Numbers as a reader wants them; said at once, because the whole takes long."""
    row = {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}
    sys.stderr.write(json.dumps(row) + "\n")
    return row


def _name(row: dict[str, Any]) -> str:
    return f"{row['model']} {row['target']} {row['precision']}"


if __name__ == "__main__":
    run(*sys.argv[1:])
