"""Two onnxruntime versions on one model, through a runtime, ending in a verdict. Installs about 100 MB once.

python -m bench.two_runtimes [PACKAGE]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from bench.nets import layers
from modelwright.measure import CompareOptions, compare
from modelwright.worker import create_runtime

PACKAGE = "onnxruntime==1.24.2"
NAME = "bench-other-onnxruntime"


def run(package: str = PACKAGE) -> dict[str, object]:
    create_runtime(NAME, [package])
    with tempfile.TemporaryDirectory() as folder:
        model = layers(Path(folder) / "model.onnx", count=12, width=192)
        options = CompareOptions(threads=1, budget_s=120)
        result = compare([f"here={model}", f"there={model}@runtime={NAME}"], options)
    there = result.arms[1]
    assert there.verdict is not None
    return {
        "package": package,
        "versions": [arm.facts.onnxruntime if arm.facts else None for arm in result.arms],
        "sentence": there.sentence,
        "verdict": there.verdict.kind.value,
        "unit_seconds": result.unit_s,
        "met": bool(there.verdict.proven),
    }


if __name__ == "__main__":
    print(json.dumps(run(*sys.argv[1:2]), indent=2))
