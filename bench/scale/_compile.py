"""The row about compiling for an NPU that is not there."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from bench.scale._bare import COMPILE
from bench.scale._models import convolutions
from bench.scale._places import Cost, Place, Row, beside, in_turns, place


def compiling() -> Row:
    """Convolutions for a Snapdragon X Elite. Bare is compiling, loading back and one run on the simulator; ours also
    looks at the model on the CPU, and its check runs the simulator as often as it says."""
    with place() as here:
        model = convolutions(here.folder / "model.onnx")
        alone = here.bare(COMPILE, model, here.folder / "alone.onnx", "only")
        fresh = (here.folder / f"bare{number}.onnx" for number in itertools.count())
        bare, ours = in_turns(lambda: here.bare(COMPILE, model, next(fresh), "run"), lambda: _compiled(here, model), 3)
        return {
            "bare_compile_cpu_s": round(alone.cpu_s, 2), **beside(ours, bare), **_stages(here),
            "limits": {"cpu_ratio": 1.2},
        }  # fmt: skip


def _compiled(here: Place, model: Path) -> Cost:
    """Into an empty store."""
    here.forget()
    return here.wright("compile", model, "--target", "qnn-npu", "-o", here.folder / "out", "--overwrite", "--json")


def _stages(here: Place) -> Row:
    """What each stage took, and how often the check ran the simulator: the log has the answer, among other lines."""
    text = (here.folder / "log.txt").read_text()
    answer, _ = json.JSONDecoder().raw_decode(text, text.index('{\n  "schema_version"'))
    stages = {stage["stage"]: stage for stage in answer["builds"][0]["components"][0]["stages"]}
    spent = {f"{name}_cpu_s": round(found["cpu_seconds"], 2) for name, found in stages.items() if found["cpu_seconds"]}
    return {**spent, "simulated_runs": stages["check"]["outcome"]["samples"]}
