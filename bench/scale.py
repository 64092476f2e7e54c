"""What large and long models cost beside the bare calls: CPU seconds and peak memory of whole processes, bytes on disk.

    python -m bench.scale [ROW ...]

Each row runs our command and the bare call in turns, in fresh processes; rows are kept in bench/results/scale.json as
they come. Bare calls are onnxruntime's (and, for placement and compiling, onnxruntime with Qualcomm's plugin).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, external_data_helper, helper, numpy_helper, save

from bench.written import read, write

WRIGHT = str(Path(sys.executable).with_name("wright"))
Row = dict[str, Any]


@dataclass(frozen=True)
class Cost:
    cpu_s: float
    peak_bytes: int
    code: int


@dataclass(frozen=True)
class Place:
    """A folder of its own with an empty store."""

    folder: Path

    def wright(self, *words: object, good: Sequence[int] = (0,)) -> Cost:
        return _run([WRIGHT, *map(str, words)], self._environment, good, self.folder / "log.txt")

    def bare(self, script: str, *words: object) -> Cost:
        return _run([sys.executable, "-c", script, *map(str, words)], self._environment, (0,), self.folder / "log.txt")

    def forget(self) -> None:
        shutil.rmtree(self.folder / "home", ignore_errors=True)

    def stored(self) -> int:
        return _bytes(self.folder / "home")

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "MODELWRIGHT_HOME": str(self.folder / "home")}


def _run(command: list[str], environment: Mapping[str, str], good: Sequence[int], log: Path) -> Cost:
    with log.open("wb") as stream:
        child = subprocess.Popen(command, env=environment, stdout=stream, stderr=stream, cwd=log.parent)
        _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in good:
        raise RuntimeError(f"{command[:3]} ended with {child.returncode}: {log.read_text(errors='replace')[-2000:]}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, child.returncode)


def _bytes(folder: Path) -> int:
    """What the files take, those that are linked twice once."""
    stats = [entry.stat() for entry in folder.rglob("*") if entry.is_file()]
    return sum({(stat.st_dev, stat.st_ino): stat.st_size for stat in stats}.values())


@contextmanager
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".scale-") as folder:
        yield Place(Path(folder))


# Models -------------------------------------------------------------------------------------------------------------


def heavy(path: Path, megabytes: int, *, external: bool = False, width: int = 2048) -> Path:
    """MatMuls of `width` × `width` weights until they weigh that much; few nodes."""
    count = max(1, megabytes * 2**20 // (4 * width * width))
    nodes, weights = [], []
    for index in range(count):
        source, target = f"h{index}" if index else "x", f"h{index + 1}" if index + 1 < count else "y"
        matrix = np.random.default_rng(index).standard_normal((width, width), dtype=np.float32) / np.float32(width**0.5)
        weights.append(numpy_helper.from_array(matrix, f"w{index}"))
        nodes.append(helper.make_node("MatMul", [source, f"w{index}"], [f"m{index}"], name=f"matmul{index}"))
        nodes.append(helper.make_node("Tanh", [f"m{index}"], [target], name=f"tanh{index}"))
    model = _model(nodes, weights, [4, width])
    if external:
        external_data_helper.convert_model_to_external_data(model, location=f"{path.stem}.data")
    save(model, str(path))
    return path


def long(path: Path, nodes: int, width: int = 16) -> Path:
    """That many nodes in blocks of MatMul, Add, Relu, with a residual Add: small weights, so the graph is the work."""
    made, weights, value = [], [], "x"
    for index in range(nodes // 4):
        matrix = np.random.default_rng(index).standard_normal((width, width)).astype(np.float32) / (2 * width**0.5)
        weights.append(numpy_helper.from_array(matrix, f"w{index}"))
        weights.append(numpy_helper.from_array(np.full(width, 0.01, np.float32), f"b{index}"))
        made.append(helper.make_node("MatMul", [value, f"w{index}"], [f"m{index}"], name=f"matmul{index}"))
        made.append(helper.make_node("Add", [f"m{index}", f"b{index}"], [f"a{index}"], name=f"bias{index}"))
        made.append(helper.make_node("Tanh", [f"a{index}"], [f"t{index}"], name=f"tanh{index}"))
        target = "y" if index + 1 == nodes // 4 else f"r{index}"
        made.append(helper.make_node("Add", [f"t{index}", value], [target], name=f"add{index}"))
        value = target
    save(_model(made, weights, [4, width]), str(path))
    return path


def _model(nodes: list[Any], weights: list[TensorProto], shape: list[int]) -> ModelProto:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "made", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


# Rows ---------------------------------------------------------------------------------------------------------------

OPTIMIZE = """
import sys, onnxruntime as ort
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
options.optimized_model_filepath = sys.argv[2]
if sys.argv[3] == "external":
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "optimized.data")
    options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "1024")
ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
"""
QUANTIZE = """
import sys, numpy as np
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
class Reader(CalibrationDataReader):
    left, rng = 4, np.random.default_rng(0)
    def get_next(self):
        self.left -= 1
        return {"x": self.rng.standard_normal((4, 16), dtype=np.float32)} if self.left >= 0 else None
quantize_static(sys.argv[1], sys.argv[2], Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, op_types_to_quantize=["Conv", "Gemm", "MatMul"])
"""
PLACE = """
import sys, onnxruntime as ort
options = ort.SessionOptions()
options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"], enable_fallback=0)
print(len(session.get_provider_graph_assignment_info()))
"""


def external(megabytes: int = 2400) -> Row:
    """fp32 build of a model whose weights are in a file of their own."""
    with place() as here:
        model = heavy(here.folder / "model.onnx", megabytes, external=True, width=4096)
        size = _bytes(here.folder)
        bare = here.bare(OPTIMIZE, model, here.folder / "optimized.onnx", "external")
        written = sum((here.folder / name).stat().st_size for name in ("optimized.onnx", "optimized.data"))
        ours = here.wright("build", model, "--target", "cpu", "-o", here.folder / "out")
        warm = here.wright("build", model, "--target", "cpu", "-o", here.folder / "out")
        return {
            "model_bytes": size, **_beside(ours, bare), "stored_bytes": here.stored(), "bare_bytes": written,
            "stored_ratio": round(here.stored() / written, 3), "peak_of_model": round(ours.peak_bytes / size, 3),
            "warm_cpu_s": round(warm.cpu_s, 2),
            "limits": {"cpu_ratio": 1.3, "stored_ratio": 1.05, "peak_of_model": 0.6, "warm_cpu_s": 0.6},
        }  # fmt: skip


def warm() -> Row:
    found: Row = {"limits": {"50": 0.6, "450": 0.6}}
    for megabytes in (50, 450):
        with place() as here:
            model = heavy(here.folder / "model.onnx", megabytes)
            here.wright("build", model, "--target", "cpu", "-o", here.folder / "out")
            costs = [here.wright("build", model, "--target", "cpu", "-o", here.folder / "out") for _ in range(3)]
            found[str(megabytes)] = round(min(cost.cpu_s for cost in costs), 2)
    return found


def nodes() -> Row:
    limits = {"optimize": 2.0, "quantize": 0.3, "analyze": 1.3}
    found: Row = {"limits": {**limits, "growth": 12}}
    for name in limits:
        sizes = {}
        for count in (1_000, 10_000):
            with place() as here:
                model = long(here.folder / "model.onnx", count)
                sizes[str(count)] = _ON_NODES[name](here, model)
        growth = sizes["10000"]["ours_cpu_s"] / sizes["1000"]["ours_cpu_s"]
        found[name] = {**sizes, "growth": round(growth, 1)}
    return found


def _optimize(here: Place, model: Path) -> Row:
    bare = here.bare(OPTIMIZE, model, here.folder / "optimized.onnx", "inside")
    return _beside(here.wright("optimize", model, "-o", here.folder / "out"), bare)


def _quantize(here: Place, model: Path) -> Row:
    bare = here.bare(QUANTIZE, model, here.folder / "quantized.onnx")
    words = ("quantize", model, "--precision", "w8a8", "--samples", 4, "-o", here.folder / "out")
    return _beside(here.wright(*words, good=(0, 1)), bare)


def _analyze(here: Place, model: Path) -> Row:
    bare = here.bare(PLACE, model)
    return _beside(here.wright("analyze", model, "--target", "cpu", good=(0, 1)), bare)


_ON_NODES: Mapping[str, Callable[[Place, Path], Row]] = {
    "optimize": _optimize,
    "quantize": _quantize,
    "analyze": _analyze,
}


def small() -> Row:
    with place() as here:
        model = heavy(here.folder / "model.onnx", 100)
        bare = here.bare(OPTIMIZE, model, here.folder / "optimized.onnx", "inside")
        ours = here.wright("build", model, "--target", "cpu", "-o", here.folder / "out")
        return {**_beside(ours, bare), "limits": {"cpu_ratio": 2.0}}


def _beside(ours: Cost, bare: Cost) -> Row:
    return {
        "ours_cpu_s": round(ours.cpu_s, 2),
        "bare_cpu_s": round(bare.cpu_s, 2),
        "cpu_ratio": round(ours.cpu_s / bare.cpu_s, 2),
        "ours_peak_bytes": ours.peak_bytes,
        "bare_peak_bytes": bare.peak_bytes,
    }


ROWS: Mapping[str, Callable[[], Row]] = {"external": external, "warm": warm, "nodes": nodes, "small": small}


def run(names: Sequence[str] = ()) -> Row:
    found = {name: row for name, row in read("scale").items() if name in ROWS}
    for name in names or ROWS:
        found[name] = ROWS[name]()
        print(name, json.dumps(found[name], indent=1), flush=True)
        write("scale", found)
    return found


if __name__ == "__main__":
    run(sys.argv[1:])
