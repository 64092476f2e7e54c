"""What large and long models cost beside the bare calls: CPU seconds and peak memory of whole processes, bytes on disk.

    python -m bench.scale [ROW ...]

Each row runs our command and the bare call in turns, in fresh processes; rows are kept in bench/results/scale.json as
they come. Bare calls are onnxruntime's (and, for placement and compiling, onnxruntime with Qualcomm's plugin).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper, save

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
        return _run(
            [sys.executable, "-c", script, *map(str, words)],
            self._environment,
            (0, -signal.SIGXCPU),
            self.folder / "log.txt",
        )

    def forget(self) -> None:
        shutil.rmtree(self.folder / "home", ignore_errors=True)

    def stored(self) -> int:
        return _bytes(self.folder / "home")

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "MODELWRIGHT_HOME": str(self.folder / "home")}


# A child's peak begins with the memory of whoever started it: this one has none worth mentioning.
_LAUNCH = """
import json, os, resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]), -1))
with open(sys.argv[1], "wb") as log:
    child = subprocess.Popen(sys.argv[3:], stdout=log, stderr=log)
    _, status, used = os.wait4(child.pid, 0)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, os.waitstatus_to_exitcode(status)]))
"""
# A bare call that takes more is stopped: its cost is at least this, and the ratio at most what it says.
LONGEST_S = 100


def _run(command: list[str], environment: Mapping[str, str], good: Sequence[int], log: Path) -> Cost:
    """CPU seconds of the process and all it waited for; the peak is that of the largest one among them."""
    launch = [sys.executable, "-S", "-c", _LAUNCH, str(log), str(LONGEST_S), *command]
    told = subprocess.run(launch, env=environment, cwd=log.parent, stdout=subprocess.PIPE, check=True).stdout
    cost = Cost(*json.loads(told))
    if cost.code not in good:
        raise RuntimeError(f"{command[:3]} ended with {cost.code}: {log.read_text(errors='replace')[-2000:]}")
    return cost


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
    matrix = np.random.default_rng(0).standard_normal((width, width), dtype=np.float32) / np.float32(width**0.5)
    nodes, weights = [], []
    with (path.with_suffix(".data") if external else Path(os.devnull)).open("wb") as data:
        for index in range(count):
            source, target = f"h{index}" if index else "x", f"h{index + 1}" if index + 1 < count else "y"
            weights.append(_outside(data, index, matrix) if external else numpy_helper.from_array(matrix, f"w{index}"))
            nodes.append(helper.make_node("MatMul", [source, f"w{index}"], [f"m{index}"], name=f"matmul{index}"))
            nodes.append(helper.make_node("Tanh", [f"m{index}"], [target], name=f"tanh{index}"))
            matrix = np.roll(matrix, 1)
    save(_model(nodes, weights, [4, width]), str(path))
    return path


def _outside(data: BinaryIO, index: int, matrix: np.ndarray) -> TensorProto:
    """Written at once: a model of many gigabytes is never in memory."""
    tensor = TensorProto(name=f"w{index}", data_type=TensorProto.FLOAT, dims=matrix.shape)
    tensor.data_location = TensorProto.EXTERNAL
    location = Path(data.name).name
    for key, value in (("location", location), ("offset", data.tell()), ("length", matrix.nbytes)):
        tensor.external_data.add(key=key, value=str(value))
    data.write(matrix.tobytes())
    return tensor


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
INT4 = """
import sys, onnx
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
quantizer = MatMulNBitsQuantizer(onnx.load(sys.argv[1]), block_size=32, is_symmetric=True)
quantizer.process()
onnx.save(quantizer.model.model, sys.argv[2])
"""
EVALUATE = """
import sys, numpy as np, onnxruntime as ort
sessions = [ort.InferenceSession(name, providers=["CPUExecutionProvider"]) for name in sys.argv[1:3]]
data = np.load(sys.argv[3])
images, labels, right = data["x"], data["label"], [0, 0]
for index, label in enumerate(labels):
    for place, session in enumerate(sessions):
        right[place] += int(session.run(None, {"x": images[index : index + 1]})[0].argmax() == label)
print(right)
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


def nodes(name: str, limit: float) -> Row:
    """The same work on 1,000 and on 10,000 nodes."""
    sizes: Row = {}
    for count in (1_000, 10_000):
        with place() as here:
            sizes[str(count)] = _ON_NODES[name](here, long(here.folder / "model.onnx", count))
    growth = sizes["10000"]["ours_cpu_s"] / sizes["1000"]["ours_cpu_s"]
    ratio = sizes["10000"]["cpu_ratio"]
    return {**sizes, "cpu_ratio": ratio, "growth": round(growth, 1), "limits": {"cpu_ratio": limit, "growth": 12}}


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


def int4(megabytes: int = 500) -> Row:
    with place() as here:
        model = heavy(here.folder / "model.onnx", megabytes)
        bare = here.bare(INT4, model, here.folder / "int4.onnx")
        words = ("quantize", model, "--precision", "int4", "-o", here.folder / "out")
        ours = here.wright(*words, good=(0, 1, 6))
        memory = round(ours.peak_bytes / bare.peak_bytes, 2)
        return {**_beside(ours, bare), "memory_ratio": memory, "limits": {"cpu_ratio": 1.1, "memory_ratio": 0.5}}


def evaluation(samples: int = 1000) -> Row:
    """Both sides run two models on every sample and score them; ours also compares their outputs."""
    with place() as here:
        models = [_classifier(here.folder / f"{seed}.onnx", seed) for seed in (0, 1)]
        data, rng = here.folder / "data.npz", np.random.default_rng(0)
        np.savez(data, x=rng.standard_normal((samples, 3, 16, 16), np.float32), label=rng.integers(0, 10, samples))
        bare = here.bare(EVALUATE, *models, data)
        words = ("--reference", models[1], "--data", data, "--task", "image-classification", "--max-drop", "50%")
        ours = here.wright("eval", models[0], *words, good=(0, 1, 6))
        return {**_beside(ours, bare), "limits": {"cpu_ratio": 1.5}}


def _classifier(path: Path, seed: int) -> Path:
    """About a tenth of a millisecond for one image."""
    rng = np.random.default_rng(seed)
    sizes = {"w": (768, 1024), "v": (1024, 10)}
    weights = [numpy_helper.from_array((rng.standard_normal(size) / 32).astype("f"), n) for n, size in sizes.items()]
    nodes = [
        helper.make_node("Flatten", ["x"], ["f"], name="flatten"),
        helper.make_node("MatMul", ["f", "w"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"], name="relu"),
        helper.make_node("MatMul", ["r", "v"], ["y"], name="second"),
    ]
    ends = {"x": [1, 3, 16, 16], "y": [1, 10]}
    taken, given = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ends.items())
    graph = helper.make_graph(nodes, "made", [taken], [given], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), str(path))
    return path


def _met(row: Row) -> bool:
    return all(row[name] <= limit for name, limit in row["limits"].items())


def _beside(ours: Cost, bare: Cost) -> Row:
    stopped = {"bare_stopped": True} if bare.code else {}
    return {
        **stopped,
        "ours_cpu_s": round(ours.cpu_s, 2),
        "bare_cpu_s": round(bare.cpu_s, 2),
        "cpu_ratio": round(ours.cpu_s / bare.cpu_s, 2),
        "ours_peak_bytes": ours.peak_bytes,
        "bare_peak_bytes": bare.peak_bytes,
    }


ROWS: Mapping[str, Callable[[], Row]] = {
    "external": external,
    "warm": warm,
    "optimize": lambda: nodes("optimize", 2.0),
    "analyze": lambda: nodes("analyze", 1.3),
    "quantize": lambda: nodes("quantize", 0.3),
    "small": small,
    "int4": int4,
    "eval": evaluation,
}


# Rows that are wanted and have no code yet: what is said about them elsewhere was measured by hand.
MISSING = ("compile for QNN", "eight targets, one layout", "a store of 100,000 entries", "a decoder of 3 B parameters")


def run(names: Sequence[str] = ()) -> Row:
    found: Row = {}
    for name in names or ROWS:
        row = ROWS[name]()
        row["met"] = _met(row)
        print(name, json.dumps(row, indent=1), flush=True)
        # Read again each time: another row may have come to its end meanwhile.
        found = {**{name: row for name, row in read("scale").items() if name in ROWS}, name: row, "missing": MISSING}
        write("scale", found)
    return found


if __name__ == "__main__":
    run(sys.argv[1:])
