"""Loading, summarising and fingerprinting a 90 MB model against a bare `onnx.load`, as whole processes.

Both commands run in turn, so that a busy machine slows both. Target: at most 1.5 times.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TARGET = 1.5
ROUNDS = 9
_BARE = "import sys, onnx; onnx.load(sys.argv[1])"


def make_model(path: Path, layers: int = 22) -> None:
    """22 dense layers of 1024 x 1024 float32, seeded: 92 MB."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal((1024, 1024), dtype=np.float32), f"w{i}") for i in range(layers)
    ]
    nodes = [helper.make_node("MatMul", [f"h{i}", f"w{i}"], [f"h{i + 1}"]) for i in range(layers)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1024]) for name in ("h0", f"h{layers}")]
    graph = helper.make_graph(nodes, "bench", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph), str(path))


def run(rounds: int = ROUNDS) -> dict[str, object]:
    """Median seconds of whole processes, and their ratio."""
    commands = {
        "onnx_load_s": [sys.executable, "-c", _BARE],
        "wright_inspect_s": [str(Path(sys.executable).with_name("wright")), "inspect"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "bench.onnx"
        make_model(model)
        for turn in range(rounds + 1):
            for name, command in commands.items():
                seconds = _time([*command, str(model)])
                if turn:  # the first round fills the page cache and the bytecode cache
                    times[name].append(seconds)
    medians = {name: round(statistics.median(values), 3) for name, values in times.items()}
    ratio = round(medians["wright_inspect_s"] / medians["onnx_load_s"], 2)
    return {**medians, "ratio": ratio, "target": f"ratio <= {TARGET}", "met": ratio <= TARGET}


def _time(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    print(run())
