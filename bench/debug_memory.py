"""Comparing a quantized model with its float model, tensor by tensor: ours beside onnxruntime's `qdq_loss_debug`.

Both do the same comparison (local, cumulative and weight SQNR) in children that take turns; the models have the size
of ResNet-50 and BERT-base with seeded random weights. onnxruntime keeps every tensor of every sample, so its memory
grows with the samples; where 32 would not fit this machine it runs on as many as fit. The memory ratio is then an upper
bound (ours on 32 samples over its own on fewer), and the times compared are those on as many samples.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SAMPLES = 32
FLAT = (8, 128)
LIMITS = {"wall_seconds": 0.5, "peak_memory": 0.25, "growth_8_to_128": 1.1}
# Of the memory that is free: other work on the machine must survive the comparison.
_MAY_USE = 0.7
TOOLS = Path(__file__).parent

OURS = """
import sys
from modelwright.diagnosis._run import DebugRequest, run_debug
from modelwright.data import DataSource
from modelwright.targets import parse_target
data, samples = DataSource(), int(sys.argv[3])
request = DebugRequest(sys.argv[1], sys.argv[2], parse_target("cpu"), data, samples, 1 << 30, {origin})
report = run_debug(request)
print("ROWS", len(report.activations), len(report.weights))
"""

PEER = """
import logging, sys, tempfile
from pathlib import Path
import onnxruntime.quantization.qdq_loss_debug as d
from onnxruntime.quantization import CalibrationDataReader
from modelwright.graph import load
from modelwright.data import generate
from modelwright.models import specs_from_graph
logging.disable(logging.CRITICAL)
class Reader(CalibrationDataReader):
    def __init__(self, specs, count):
        self.drawn = (generate(specs, 0, index) for index in range(count))
    def get_next(self):
        return next(self.drawn, None)
wanted, got, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
specs = specs_from_graph(load(wanted))
with tempfile.TemporaryDirectory(dir=Path(wanted).parent) as folder:
    seen = []
    for path in (wanted, got):
        shown = str(Path(folder, Path(path).name))
        d.modify_model_output_intermediate_tensors(path, shown)
        seen.append(d.collect_activations(shown, Reader(specs, count)))
    matched = {k: v for k, v in d.create_activation_matching(seen[1], seen[0]).items() if "float" in v}
    activations = d.compute_activation_error(matched)
    weights = d.compute_weight_error(d.create_weight_matching(wanted, got))
print("ROWS", len(activations), len(weights))
"""

REPORT = """
import resource
usage = resource.getrusage(resource.RUSAGE_SELF)
print("USED", usage.ru_maxrss, usage.ru_utime + usage.ru_stime)
"""


def run(samples: int = SAMPLES) -> dict:
    """Both models, both arms; ratios are ours divided by onnxruntime's."""
    with tempfile.TemporaryDirectory() as folder:
        models = {name: _models(name, Path(folder)) for name in ("resnet50", "bert")}
        found = {name: _compare(*pair, samples) for name, pair in models.items()}
        small, large = (_child(OURS.format(origin=True), *models["resnet50"], count) for count in FLAT)
    ratios = {
        "wall_seconds": max(item["ratios"]["wall_seconds"] for item in found.values()),
        "peak_memory": max(item["ratios"]["peak_memory"] for item in found.values()),
        "growth_8_to_128": large["peak_mb"] / small["peak_mb"],
    }
    return {
        "samples": samples,
        "models": found,
        "flat": {"samples": FLAT, "peak_mb": [small["peak_mb"], large["peak_mb"]]},
        "ratios": ratios,
        "limits": LIMITS,
        "met": all(ratios[name] <= limit for name, limit in LIMITS.items()),
    }


def _compare(wanted: Path, got: Path, samples: int) -> dict:
    probe = _child(PEER, wanted, got, 1), _child(PEER, wanted, got, 4)
    each = max(1.0, (probe[1]["peak_mb"] - probe[0]["peak_mb"]) / 3)
    fits = int((_available_mb() * _MAY_USE - probe[0]["peak_mb"]) / each)
    count = max(1, min(samples, fits))
    theirs = _child(PEER, wanted, got, count)
    ours = _child(OURS.format(origin=False), wanted, got, samples)
    same = ours if count == samples else _child(OURS.format(origin=False), wanted, got, count)
    traced = _child(OURS.format(origin=True), wanted, got, samples)
    return {
        "onnxruntime": {**theirs, "samples": count, "mb_per_sample": each},
        "ours": {**ours, "samples": samples},
        "ours_on_as_many": {**same, "samples": count},
        "ours_with_originators": {**traced, "samples": samples},
        "ratios": {
            "wall_seconds": same["seconds"] / theirs["seconds"],
            "peak_memory": ours["peak_mb"] / theirs["peak_mb"],
        },
    }


def _child(code: str, wanted: Path, got: Path, samples: int) -> dict:
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code + REPORT, str(wanted), str(got), str(samples)],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds = time.perf_counter() - started
    rows = done.stdout.split("ROWS")[1].split()[:2]
    used = done.stdout.split("USED")[1].split()
    return {
        "seconds": seconds,
        "cpu_seconds": float(used[1]),
        "peak_mb": int(used[0]) / 1024,
        "activations": int(rows[0]),
        "weights": int(rows[1]),
    }


def _available_mb() -> float:
    line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
    return int(line.split()[1]) / 1024


def _models(name: str, folder: Path) -> tuple[Path, Path]:
    """The float model and its w8a8 form, made by our own stage in a child."""
    wanted, out = folder / f"{name}.onnx", folder / f"{name}_quant"
    out.mkdir()
    subprocess.run([sys.executable, __file__, "--write", name, str(wanted), str(out)], check=True)
    return wanted, out / "model.onnx"


def _write(name: str, wanted: Path, out: Path) -> None:
    from modelwright.data import DataSource
    from modelwright.stages.quantize import QuantizeParams, run_quantize

    if name == "bert":
        sys.path.insert(0, str(TOOLS))
        from quantize_memory import write_bert

        write_bert(wanted, 12)
    else:
        write_resnet50(wanted)
    run_quantize(str(wanted), str(out), QuantizeParams("w8a8", samples=1), DataSource())


def write_resnet50(path: Path) -> None:
    """ResNet-50 by shape, batch norms folded, 25.5 million seeded random parameters."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []

    def weight(name: str, *shape: int) -> str:
        size = float(np.prod(shape[1:])) or 1.0
        values = rng.standard_normal(shape, dtype=np.float32) * np.float32((2.0 / size) ** 0.5)
        weights.append(numpy_helper.from_array(values, name))
        return name

    def node(op: str, inputs: list[str], **attributes: object) -> str:
        name = f"{op}_{len(nodes)}"
        nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def conv(x: str, inputs: int, outputs: int, kernel: int, stride: int = 1) -> str:
        name = f"c{len(nodes)}"
        stored = [weight(f"{name}.w", outputs, inputs, kernel, kernel), weight(f"{name}.b", outputs)]
        return node("Conv", [x, *stored], strides=[stride] * 2, pads=[kernel // 2] * 4)

    x = node("Relu", [conv("image", 3, 64, 7, 2)])
    x = node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inputs = 64
    for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            short = x if block else conv(x, inputs, 4 * width, 1, stride)
            y = node("Relu", [conv(x, inputs, width, 1)])
            y = node("Relu", [conv(y, width, width, 3, stride)])
            x = node("Relu", [node("Add", [conv(y, width, 4 * width, 1), short])])
            inputs = 4 * width
    flat = node("Flatten", [node("GlobalAveragePool", [x])])
    nodes.append(
        helper.make_node("Gemm", [flat, weight("fc.w", 2048, 1000), weight("fc.b", 1000)], ["logits"], name="fc")
    )
    spec = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "resnet50",
        [spec("image", TensorProto.FLOAT, [1, 3, 224, 224])],
        [spec("logits", TensorProto.FLOAT, [1, 1000])],
        weights,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    options = parser.parse_args()
    if options.write:
        name, wanted, out = options.write
        _write(name, Path(wanted), Path(out))
        return 0
    result = run(options.samples)
    print(json.dumps(result, indent=2))
    return 0 if result["met"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
