"""`wright support run` killed at twenty points: do the rows stay the same, and is any line of evidence lost or doubled?

    python -m bench.support_kills

A model of three operators climbs to L3. First undisturbed; then into other folders, killed with SIGKILL when so many
bytes of evidence are there, or after so long, and given again until it ends. `met`: every folder ends with the rows of
the first one, every question is answered on exactly one line, and no line is touched.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bench import written
from modelwright.support import EVIDENCE, read_evidence

NAME, KILLS = "support_kills", 20
_PATIENCE_S = 600.0


def run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _model(place)
        whole = _ended(place, place / "whole")
        coin, rows, killed = random.Random(0), [], 0
        number = 0
        while killed < KILLS:
            out = place / f"out-{number}"
            number += 1
            here = 0
            # A few kills in each folder, so that what went on is killed again.
            for _ in range(4):
                here += _killed(place, out, coin)
            killed += here
            rows.append(_compared(_ended(place, out), whole, out, here))
    return {
        "kills": killed,
        "folders": len(rows),
        "rows": whole,
        "differ": [row for row in rows if not row["same"]],
        "met": all(row["same"] for row in rows),
    }


def _call(place: Path, out: Path) -> list[str]:
    words = ["support", "run", "net.onnx", "-o", str(out), "--ceiling", "L3", "--seeds", "2", "--data", "rows.npz"]
    more = ["--task", "text-classification", "--max-drop", "5pt", "-q", "--json"]
    return [str(Path(sys.executable).with_name("wright")), *words, *more]


def _ended(place: Path, out: Path) -> list[Any]:
    done = subprocess.run(_call(place, out), cwd=place, env=_env(place), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    document = json.loads(done.stdout)
    rows = [[row["level"], row["target"], row["word"]] for row in document["rows"]]
    return [document["gate"]["word"], *rows]


def _killed(place: Path, out: Path, coin: random.Random) -> int:
    """1 where it was still at work."""
    before = _size(out)
    at_bytes, at_s = before + coin.randint(1, 9000), coin.uniform(0.5, 40.0)
    process = subprocess.Popen(
        _call(place, out), cwd=place, env=_env(place), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    began = time.monotonic()
    while process.poll() is None and time.monotonic() - began < _PATIENCE_S:
        if _size(out) >= at_bytes or time.monotonic() - began > at_s:
            break
        time.sleep(0.002)
    at_work = process.poll() is None
    if at_work:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return int(at_work)


def _compared(rows: list[Any], whole: list[Any], out: Path, kills: int) -> dict[str, Any]:
    found = read_evidence(out)
    asked = [one.asked for one in found.statements]
    same = rows == whole and not found.flaws and not found.torn and len(set(asked)) == len(asked)
    row = {"kills": kills, "lines": len(asked), "same": same, "flaws": len(found.flaws)}
    sys.stderr.write(json.dumps(row) + "\n")
    return row


def _size(out: Path) -> int:
    file = out / EVIDENCE
    return file.stat().st_size if file.is_file() else 0


def _env(place: Path) -> dict[str, str]:
    return {**os.environ, "MODELWRIGHT_HOME": str(place / "home")}


def _model(place: Path) -> None:
    rng = np.random.default_rng(0)
    weights = {"a": rng.normal(size=(16, 32)).astype("f4"), "b": rng.normal(size=(32, 4)).astype("f4")}
    nodes = [("MatMul", ["x", "a"], ["h"]), ("Relu", ["h"], ["r"]), ("MatMul", ["r", "b"], ["logits"])]
    graph = helper.make_graph(
        [helper.make_node(kind, inputs, outputs) for kind, inputs, outputs in nodes],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 4])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), place / "net.onnx")
    rows = rng.normal(size=(300, 16)).astype("f4")
    labels = (np.maximum(rows @ weights["a"], 0) @ weights["b"]).argmax(-1)
    np.savez(place / "rows.npz", x=rows, label=labels)


if __name__ == "__main__":
    found = run()
    written.write(NAME, found)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
