"""Is what the gate calls passed of use? Every trained model of `bench.zoo`, built and judged with data of its own.

Each is built for cpu (w8a8) and for qnn-npu (w8a16, w8a8). Beside the gate's word stands the drop of the task's metric
against the float model with 95 % bounds of paired resampling: of cpu builds as this CPU executes them, of qnn-npu
builds as their graph says. A row misses when a build passed although it lost more than the bound of its metric, or
failed although it is surely within it. A refusal is no miss, and is listed.
`python -m bench.passed NAME ...` builds the named models only, and writes nothing.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import zoo
from modelwright.errors import WrightError
from modelwright.models import resolve
from modelwright.pipeline import BuildFailure, BuildResult, RecipeChoices, build_all, deliver, resolve_recipe
from modelwright.store import Store
from modelwright.targets import parse_target
from modelwright.vocabulary import Data

FLOAT = ("cpu", "fp32")
BUILDS = (("cpu", "w8a8"), ("qnn-npu", "w8a16"), ("qnn-npu", "w8a8"))


def run(*names: str) -> dict[str, Any]:
    return summed([row for trained in zoo.models(*names) for row in rows_of(trained)])


def summed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    built = [row for row in rows if "drop" in row]
    return {
        "models": len({row["model"] for row in built}),
        "with_labels": len({row["model"] for row in built if row["labels"] != "agreement with float"}),
        "rows": rows,
        "refused": [_name(row) for row in rows if "drop" not in row],
        "passed_but_useless": [_name(row) for row in built if row["miss"] == "passed but useless"],
        "failed_but_good": [_name(row) for row in built if row["miss"] == "failed but good"],
        "met": all(row.get("miss") is None for row in built),
    }


def rows_of(trained: zoo.Trained) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        whole, *built = builds(trained, (FLOAT, *BUILDS), Path(folder))
        if not isinstance(whole, Made):
            return [_row(trained, wanted, whole, None, None) for wanted in BUILDS]
        before = trained.score(zoo.answers(whole.model))
        return [_row(trained, wanted, one, whole, before) for wanted, one in zip(BUILDS, built, strict=True)]


class Made:
    """A build that came to an end, and its file."""

    def __init__(self, result: BuildResult, model: Path) -> None:
        self.result, self.model = result, model


def builds(trained: zoo.Trained, wanted: Sequence[tuple[str, str]], folder: Path) -> list[Made | WrightError]:
    """All in one call, so that what they share is made once; a target keeps the portable file, not its blob."""
    source: Any = resolve(str(trained.path))
    data = Data(str(trained.write_calibration(folder)))
    with Store(folder / "store") as store:
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
    row |= {"target": wanted[0], "precision": wanted[1], "bound": trained.bound}
    if isinstance(made, WrightError) or before is None:
        row |= {"refused": f"{made.problem}: {made.cause}" if isinstance(made, WrightError) else "no float build"}
        return _told(row)
    started = time.perf_counter()
    after = trained.score(zoo.answers(made.model, as_written=wanted[0] != "cpu"))
    lost = zoo.drop(trained, before, after)
    gate = made.result.components[0].validation
    row |= {"passed": made.result.passed, "float": trained.value(before), "built": trained.value(after)}
    row |= {**asdict(lost), "samples": len(before), "miss": _miss(made.result.passed, lost, trained.bound)}
    row |= {"gate_worst_cosine": gate.worst_cosine, "gate_samples": gate.samples, "gate_note": gate.note}
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
    print(json.dumps(run(*sys.argv[1:]), indent=2))
